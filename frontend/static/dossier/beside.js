// What is fetched beside a page, because making it may take longer than the page: elements with data-fetch="address".
// Without scripts they hold a link that leads there.

async function fill(element) {
  const response = await fetch(element.dataset.fetch, { credentials: "same-origin", headers: { "X-Beside": "1" } });
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const part = page.querySelector("[data-beside]");
  if (part) element.replaceChildren(part);
}

export function startBeside() {
  for (const element of document.querySelectorAll("[data-fetch]")) fill(element).catch(() => {}); // the link stays
}
