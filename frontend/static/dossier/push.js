// Push on this device: whether it can, whether it does, and the form that enables it.
const card = document.getElementById("device");
const form = card.querySelector("[data-push-form]");
const state = card.querySelector("[data-push-state]");
const key = card.dataset.pushKey;

const missing = () => {
  if (!isSecureContext) return "Push needs HTTPS.";
  if (!("serviceWorker" in navigator && "Notification" in window)) return "This browser has no push.";
  if (!("PushManager" in window)) return "This browser has no push here. On iPhone and iPad, add Dossier to the Home Screen first.";
  if (Notification.permission === "denied") return "Notifications of this site are blocked. Allow them in the settings of the browser.";
  return "";
};

// A name to begin with, such as chrome-linux.
const named = () => {
  const agent = navigator.userAgent;
  const browser = [["Edg", "edge"], ["Firefox", "firefox"], ["Chrome", "chrome"], ["Safari", "safari"]].find(([word]) => agent.includes(word));
  const system = [["Android", "android"], ["iPhone", "iphone"], ["iPad", "ipad"], ["Windows", "windows"], ["Mac", "mac"], ["Linux", "linux"]].find(([word]) => agent.includes(word));
  return [browser?.[1] || "browser", system?.[1]].filter(Boolean).join("-");
};

const digest = async (text) => {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};

const rawKey = () => Uint8Array.from(atob(key.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));

async function current() {
  const registration = await navigator.serviceWorker.getRegistration("/");
  return registration ? registration.pushManager.getSubscription() : null;
}

// For the service worker, which renews a subscription that the browser replaces.
async function keep(subscription) {
  await (await caches.open("push")).put("/subscription", new Response(JSON.stringify({subscription, key})));
}

async function subscribe() {
  if (await Notification.requestPermission() !== "granted") throw new Error(missing() || "Notifications were not allowed.");
  await navigator.serviceWorker.register("/service-worker.js");
  const {pushManager} = await navigator.serviceWorker.ready;
  const wanted = {userVisibleOnly: true, applicationServerKey: rawKey()};
  try {
    return await pushManager.subscribe(wanted);
  } catch (error) {
    if (error.name !== "InvalidStateError") throw error;
    await (await pushManager.getSubscription()).unsubscribe(); // one for another key
    return pushManager.subscribe(wanted);
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const subscription = await subscribe();
    await keep(subscription);
    form.elements.subscription.value = JSON.stringify(subscription);
    form.submit();
  } catch (error) {
    button.disabled = false;
    state.className = "problem";
    state.setAttribute("role", "alert");
    state.textContent = `Not enabled: ${error.message}`;
  }
});

async function start() {
  state.textContent = missing();
  if (state.textContent) return;
  if (!form.elements.device.value) form.elements.device.value = named();
  const subscription = await current();
  const row = subscription && document.querySelector(`[data-device="${await digest(subscription.endpoint)}"]`);
  if (!row) {
    state.textContent = "Pages appear as notifications with a button to acknowledge, also while no window is open.";
    form.hidden = false;
    return;
  }
  await keep(subscription); // to its end: the server may refuse to forget the device, and others may use it here
  row.querySelector("[data-here]").hidden = false;
  state.textContent = `Enabled as ${row.querySelector("strong").textContent}.`;
}
start();
