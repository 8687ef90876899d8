// Sliders beside number fields: the field is what is sent; a slider is a quick hand on it. The address follows, so
// that what is shown can be shared.
const form = document.querySelector("form[data-sliders]");
const sliders = [...form.querySelectorAll("input[type=range]")];
const field = (slider) => document.getElementById(slider.dataset.for);

function valueAt(slider) {
  const [least, most] = [Number(slider.dataset.least), Number(slider.dataset.most)];
  const share = slider.value / slider.max;
  const value = "log" in slider.dataset ? least * (most / least) ** share : least + (most - least) * share;
  return "whole" in slider.dataset ? Math.round(value) : Number(value.toPrecision(3));
}

function placeOf(slider, value) {
  const [least, most] = [Number(slider.dataset.least), Number(slider.dataset.most)];
  const held = Math.min(Math.max(value, least), most);
  return Math.round(slider.max * ("log" in slider.dataset ? Math.log(held / least) / Math.log(most / least) : (held - least) / (most - least)));
}

function follow() {
  for (const slider of sliders) {
    const typed = field(slider);
    if (Number.isFinite(Number(typed.value)) && typed.value.trim()) slider.value = placeOf(slider, Number(typed.value));
    slider.setAttribute("aria-valuetext", `${typed.value} ${typed.parentElement.querySelector(".unit").textContent}`);
  }
}

function remember() {
  history.replaceState(history.state, "", `${location.pathname}?${new URLSearchParams(new FormData(form))}`);
}

form.addEventListener("input", (event) => {
  if (event.target.type === "range") {
    field(event.target).value = valueAt(event.target);
    event.target.setAttribute("aria-valuetext", `${field(event.target).value} ${field(event.target).parentElement.querySelector(".unit").textContent}`);
  } else follow();
  remember();
});
form.querySelector("[data-reset]").addEventListener("click", (event) => {
  event.preventDefault();
  sliders.forEach((slider) => { field(slider).value = field(slider).dataset.default; });
  follow();
  history.replaceState(history.state, "", location.pathname);
  form.dispatchEvent(new Event("change", { bubbles: true }));
});
follow();
