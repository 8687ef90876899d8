"""Push in real Chromium: a device is enabled, a page arrives while no window is open, and is acknowledged from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from playwright.sync_api import CDPSession, Page, Worker, expect

from incidents import queries
from incidents.domain.notifications.message import MessageLine, compose
from incidents.domain.notifications.push import push_payload
from incidents.notifications.answer_links import link_of
from incidents.notifications.models import ContactMethod, Notification, Preferences
from incidents.notifications.queue import notify
from incidents.security.push_encryption import new_key, public_key
from ingest.queries import Context
from tests.browser import content
from tests.browser.conftest import Console
from tests.browser.looking import violations

PAGE = "/settings/notifications"
SUBSCRIBED = """
const keys = {p256dh: "%s", auth: "BTBZMqHH6r4Tts7J_aSIgg"}, endpoint = "https://push.example.com/send/1";
const found = {endpoint, keys, toJSON: () => ({endpoint, expirationTime: null, keys}), unsubscribe: async () => {
  sessionStorage.removeItem("subscribed");
  return true;
}};
PushManager.prototype.subscribe = async function (options) {
  if (options.applicationServerKey.length !== 65) throw new TypeError("the key is no point");
  sessionStorage.setItem("subscribed", "yes");
  return found;
};
Object.defineProperty(Notification, "permission", {value: "default"});
Notification.requestPermission = async () => "granted";
PushManager.prototype.getSubscription = async () => sessionStorage.getItem("subscribed") ? found : null;
"""
"""Chromium would ask the person, and a push service on the internet: what those answer."""


@pytest.fixture
def page(console: Console) -> Iterator[Page]:
    """Alice's notifications, in a browser that may show them."""
    page = console.watched(console.context.new_page())
    page.add_init_script(SUBSCRIBED % public_key(new_key()))
    page.goto(console.address + PAGE)
    yield page
    ContactMethod.objects.filter(kind="push").delete()


def test_a_device_is_enabled_known_again_and_removed_with_the_keyboard(page: Page) -> None:
    card = page.locator("#device")
    field = card.get_by_label("Name of the device")
    expect(field).to_have_value("chrome-linux")
    field.fill("desk")
    page.keyboard.press("Enter")
    expect(card).to_contain_text("Enabled as desk.")
    row = page.locator("li[data-device]")
    expect(row).to_contain_text("this device")
    expect(row).to_contain_text("push.example.com")
    assert violations(page) == []
    row.get_by_role("button", name="Remove desk").press("Enter")
    expect(page.locator("#device").get_by_role("button", name="Enable push")).to_be_visible()
    assert not ContactMethod.objects.filter(kind="push").exists()


def test_a_device_that_a_rule_uses_is_still_subscribed_after_its_removal_was_refused(page: Page) -> None:
    page.locator("#device").get_by_label("Name of the device").press("Enter")
    expect(page.locator("#device")).to_contain_text("Enabled as chrome-linux.")
    rules = [{"method": "chrome-linux", "delay": 0, "severities": [], "urgent": None}]
    preferences = Preferences.objects.create(user=get_user_model().objects.get(username="alice"), rules=rules)
    page.get_by_role("button", name="Remove chrome-linux").press("Enter")
    expect(page.locator(".toasts")).to_contain_text("A rule uses chrome-linux")
    expect(page.locator("#device")).to_contain_text("Enabled as chrome-linux.")
    preferences.delete()


def test_a_browser_that_blocks_notifications_is_told_what_to_do(console: Console) -> None:
    page = console.open(PAGE)
    expect(page.locator("#device")).to_contain_text("Notifications of this site are blocked")


def called(number: int) -> bytes:
    """A page for Alice about an incident, and what her browser decrypts of it."""
    incident = queries.get(str(number)).incident
    key = f"push-{uuid4()}"
    notify("alice", incident.id, key, "you are on call", True, Context("system:test"), datetime.now(UTC))
    row = Notification.objects.get(key=key)
    line = MessageLine(
        id=incident.id,
        number=number,
        title=incident.title,
        severity=incident.severity,
        state=incident.state,
        team=incident.team,
        component=incident.component,
        verdict=None,
        confidence=None,
        reason=row.why,
        url=f"{settings.PUBLIC_URL}/incidents/{number}",
        answer_url=link_of(row),
    )
    return push_payload(compose("m", [line], settings.PUBLIC_URL))


def registered(page: Page, cdp: CDPSession) -> tuple[str, Worker]:
    found: list[str] = []
    cdp.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: found.extend(one["registrationId"] for one in event["registrations"]),
    )
    cdp.send("ServiceWorker.enable")
    page.evaluate("navigator.serviceWorker.register('/service-worker.js')")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    (worker,) = page.context.service_workers
    return found[0], worker


SYSTEM = """() => {
self.system = [];
const without = (one) => { self.system = self.system.filter((other) => other !== one && other.tag !== one.tag); };
registration.showNotification = async (title, options) => {
  const one = {title, ...options, close() { without(one); }};
  without(one);
  self.system.push(one);
};
}"""
"""Notifications of the system: Chromium without windows refuses all of them."""
SHOWN = """async () => {
const pause = () => new Promise((go) => setTimeout(go, 50));
for (let tries = 0; !self.system.length && tries < 200; tries += 1) await pause();
return self.system.map(({body, actions}) => ({body, actions: actions.map((one) => one.action)}));
}"""
CLICK = """async (action) => {
const ended = [];
const event = new Event("notificationclick");
Object.assign(event, {action, notification: self.system[0], waitUntil: (promise) => ended.push(promise)});
self.dispatchEvent(event);
await Promise.all(ended);
}"""


def test_a_page_is_shown_and_acknowledged_once_from_its_notification(console: Console, page: Page) -> None:
    number = content.open_ticket("Racks lose power")
    cdp = console.context.new_cdp_session(page)
    registration, worker = registered(page, cdp)
    worker.evaluate(SYSTEM)
    body, told = called(number), []
    for _ in range(2):
        push = {"origin": console.address, "registrationId": registration, "data": body.decode()}
        cdp.send("ServiceWorker.deliverPushMessage", push)
        (one,) = worker.evaluate(SHOWN)
        assert one["actions"] == ["acknowledge"]
        worker.evaluate(CLICK, "acknowledge")
        (one,) = worker.evaluate(SHOWN)
        told.append((one["body"].partition(":")[0], one["actions"]))
    assert told == [(f"Acknowledged #{number}.", []), ("Not acknowledged", [])]
    assert queries.get(str(number)).incident.acknowledged_by == "alice"


def test_without_a_network_the_app_shows_a_page_that_says_so(console: Console, page: Page) -> None:
    cdp = console.context.new_cdp_session(page)
    registered(page, cdp)
    page.reload()
    console.context.set_offline(True)
    try:
        page.goto(console.address + "/on-call")
        expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    finally:
        console.context.set_offline(False)
        console.problems.clear()  # the browser logs each request that fails without a network
    assert violations(page) == []


REPLACE = """async () => {
let ended, posted;
const fetched = self.fetch;
self.registration.pushManager.subscribe = async (wanted) => ({endpoint: "new", key: wanted.applicationServerKey});
self.fetch = async (path, {body}) => { posted = [path, ...body]; return new Response("{}"); };
const event = new Event("pushsubscriptionchange");
event.waitUntil = (promise) => { ended = promise; };
try { self.dispatchEvent(event); await ended; } finally {
  self.fetch = fetched; // the worker serves the tests after this one, too
  delete self.registration.pushManager.subscribe;
}
return posted.flat();
}"""


def test_a_subscription_that_the_browser_replaces_is_renewed_by_the_app(console: Console, page: Page) -> None:
    page.locator("#device").get_by_role("button", name="Enable push").press("Enter")
    expect(page.locator("#device")).to_contain_text("Enabled as")
    cdp = console.context.new_cdp_session(page)
    _, worker = registered(page, cdp)
    path, _, before, _, after = worker.evaluate(REPLACE)
    assert path == "/settings/notifications/devices/renew"
    assert json.loads(before)["endpoint"] == "https://push.example.com/send/1"
    assert json.loads(after) == {
        "endpoint": "new",
        "key": page.locator("#device").get_attribute("data-push-key"),
    }
