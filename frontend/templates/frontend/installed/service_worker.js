{% load static %}// Shows pushed pages, acknowledges from a notification, and has a page for the time without a network.
const OFFLINE = "{% url 'offline' %}";
const KEPT = [OFFLINE, "{% static 'dossier/theme.js' %}", "{% static 'dossier/favicon.svg' %}", "{% static 'dossier/tokens.css' %}", "{% static 'dossier/base.css' %}"];
const LOOKS = {icon: "{% static 'dossier/icon-192.png' %}", badge: "{% static 'dossier/badge.png' %}"};

self.addEventListener("install", (event) => event.waitUntil((async () => {
  const cache = await caches.open("offline");
  await cache.addAll(KEPT.map((path) => new Request(path, {cache: "reload"})));
  await self.skipWaiting();
})()));
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const {request} = event;
  if (request.method !== "GET") return;
  const path = new URL(request.url).pathname;
  const kept = request.mode === "navigate" ? OFFLINE : KEPT.includes(path) ? path : null;
  if (kept) event.respondWith(fetch(request).catch(() => caches.match(kept)));
});

self.addEventListener("push", (event) => {
  let page;
  try { page = event.data.json(); } catch { page = {title: "Dossier", text: "A message that cannot be read. Open the inbox.", tag: "unreadable", url: "/"}; }
  event.waitUntil(show(page, page.text));
});

function show(page, text) {
  return self.registration.showNotification(page.title, {
    ...LOOKS, body: text, tag: page.tag, renotify: true, requireInteraction: Boolean(page.answer), data: page,
    actions: page.answer ? [{action: "acknowledge", title: "Acknowledge"}] : [],
  });
}

self.addEventListener("notificationclick", (event) => {
  const page = event.notification.data;
  event.notification.close();
  event.waitUntil(event.action === "acknowledge" ? acknowledge(page) : open(page.url));
});

// By the one-time link of the page, which needs no session.
async function acknowledge(page) {
  let response, said;
  try {
    response = await fetch(page.answer, {method: "POST", headers: {Accept: "application/json"}, body: new URLSearchParams({verb: "acknowledge"})});
    said = await response.json();
  } catch {
    return show(page, "Not acknowledged: no answer from Dossier. Try again.");
  }
  return show({...page, answer: ""}, response.ok ? said.text : `Not acknowledged: ${said.text}`);
}

// The browser replaced the subscription of this device, or ended it: subscribe again, and tell the server by the
// subscription before. Not every browser says which that was, so the settings page keeps it here.
self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(renew(event)));

async function renew(event) {
  const cache = await caches.open("push");
  const kept = await (await cache.match("/subscription"))?.json();
  if (!kept) return;
  const before = event.oldSubscription || kept.subscription;
  const after = event.newSubscription || await self.registration.pushManager.subscribe({userVisibleOnly: true, applicationServerKey: kept.key});
  const body = new URLSearchParams({before: JSON.stringify(before), subscription: JSON.stringify(after)});
  const said = await fetch("{% url 'notification_device_renew' %}", {method: "POST", body});
  if (said.ok) await cache.put("/subscription", new Response(JSON.stringify({...kept, subscription: after})));
}

async function open(path) {
  const windows = await self.clients.matchAll({type: "window", includeUncontrolled: true});
  const shown = windows.find((one) => new URL(one.url).pathname === path);
  return shown ? shown.focus() : self.clients.openWindow(path);
}
