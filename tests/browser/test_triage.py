"""Alice triages: what she sees, presses and gets, in a real browser."""

from __future__ import annotations

from playwright.sync_api import expect

from incidents import commands, queries
from tests.browser import content
from tests.browser.conftest import Console, sign_in


def state(number: int) -> str:
    return queries.get(str(number)).incident.state


def row(number: int) -> str:
    return f"tr[data-id='{content.ticket_id(number)}']"


def test_a_wrong_password_is_refused_in_words(console: Console) -> None:
    context = console.context.browser
    assert context is not None
    stranger = context.new_page()
    sign_in(stranger, console.address, "wrong")
    expect(stranger.get_by_role("alert")).to_contain_text("password")
    stranger.context.close()


def test_a_ticket_sent_to_the_api_is_announced_and_no_row_moves_until_it_is_asked_for(
    console: Console,
) -> None:
    first = content.open_ticket("So that the list is there", severity="critical")
    inbox = console.open("/")
    place = inbox.locator(row(first)).bounding_box()
    expect(inbox.locator(".live")).to_have_text("Live")
    number = content.post_ticket(console.address, title="GPU node fails a check", severity="critical")
    news = inbox.get_by_role("button", name="1 new incident: #")
    expect(news).to_contain_text("GPU node fails a check", timeout=3000)
    assert inbox.locator(row(first)).bounding_box() == place
    inbox.keyboard.press("n")
    expect(inbox.locator(row(number))).to_be_visible(timeout=3000)
    expect(news).to_be_hidden()
    assert "arrived" in (inbox.locator(row(number)).get_attribute("class") or "")


def test_the_keyboard_walks_the_list_and_opens_a_ticket(console: Console) -> None:
    number = content.open_ticket("Opened by keyboard", severity="critical")
    inbox = console.open("/")
    inbox.keyboard.press("j")
    assert inbox.evaluate("document.activeElement.closest('tr').dataset.id") == content.ticket_id(number)
    inbox.keyboard.press("Enter")
    inbox.wait_for_url(f"**/incidents/{number}?*")


def test_who_comes_back_from_a_ticket_finds_the_same_rows_at_the_same_height(console: Console) -> None:
    for n in range(60):
        content.open_ticket(f"Basalt {n}", severity="info")
    inbox = console.open("/?search=basalt")
    rows, numbers = inbox.locator("tr[data-id]"), "rows => rows.map((row) => row.dataset.number)"
    inbox.evaluate("scrollTo(0, document.body.scrollHeight)")
    expect(rows).to_have_count(60)
    shown = rows.evaluate_all(numbers)
    rows.nth(54).locator("a.title").focus()
    height = rows.nth(54).bounding_box()
    inbox.keyboard.press("Enter")
    expect(inbox.locator(".among")).to_contain_text("55 of 60")
    inbox.go_back()
    expect(rows).to_have_count(60)
    expect(inbox.locator(f"#t{shown[54]} a.title")).to_be_focused()
    assert (rows.evaluate_all(numbers), rows.nth(54).bounding_box()) == (shown, height)
    inbox.keyboard.press("Enter")
    expect(inbox.locator(".among")).to_be_visible()
    inbox.wait_for_load_state()  # its scripts have run
    inbox.keyboard.press("]")
    inbox.wait_for_url(f"**/incidents/{shown[55]}?*")
    inbox.keyboard.press("e")
    expect(inbox.locator(".verdict .pill:not([data-failure])")).to_have_text("Acknowledged")
    inbox.keyboard.press("u")
    expect(inbox.locator(f"#t{shown[55]} a.title")).to_be_focused()
    assert rows.evaluate_all(numbers) == shown


def test_e_acknowledges_in_the_inbox_and_can_be_undone(console: Console) -> None:
    number = content.open_ticket("Acknowledged by keyboard", severity="critical")
    inbox = console.open("/")
    inbox.locator(f"{row(number)} a.title").focus()
    inbox.keyboard.press("e")
    expect(inbox.locator(f"{row(number)}.acknowledged")).to_be_visible()
    inbox.get_by_role("button", name="Undo").click()
    expect(inbox.locator(f"{row(number)}.open")).to_be_visible()


def test_what_was_refused_of_several_is_said_and_the_rest_is_undone(console: Console) -> None:
    numbers = [content.open_ticket(f"One of several, {place}", severity="critical") for place in range(3)]
    inbox = console.open("/?search=several")
    inbox.route("**/live", lambda route: route.abort())
    inbox.reload()
    for number in numbers:
        inbox.get_by_label(f"Select #{number}", exact=True).check()
    commands.acknowledge(content.ticket_id(numbers[0]), content.BOB)
    inbox.keyboard.press("e")
    toast = inbox.locator(".toast.bulk-result")
    expect(toast).to_contain_text("Acknowledged 2 incidents")
    expect(toast).to_contain_text(f"#{numbers[0]}: ")
    toast.get_by_role("button", name="Undo").click()
    expect(inbox.locator(".toast.bulk-result")).to_contain_text("Undone for 2 incidents")
    assert [state(number) for number in numbers] == ["acknowledged", "open", "open"]
    console.problems.clear()  # the browser logs the aborted request


def test_the_box_in_the_head_selects_every_row_once(console: Console) -> None:
    for n in range(3):
        content.open_ticket(f"Selected together {n}")
    inbox = console.open("/?search=%22Selected+together%22")
    inbox.get_by_label("Select all shown").check()
    expect(inbox.locator("[data-count]")).to_have_text("3 selected")


def test_a_letter_opens_the_panel_for_the_row_at_hand_and_leads_back_to_it(console: Console) -> None:
    number = content.open_ticket("Handed over from the list", component="tor/dc1-t12")
    inbox = console.open(f"/?search=%23{number}")
    inbox.keyboard.press("j")
    inbox.keyboard.press("h")
    inbox.get_by_label("To team").select_option("storage")
    inbox.get_by_role("button", name="Hand over", exact=True).click()
    expect(inbox.get_by_role("alert").filter(has_text="Reason")).to_be_visible()
    inbox.get_by_label("Reason for the hand-over").fill("The disks time out.")
    inbox.get_by_role("button", name="Hand over", exact=True).click()
    expect(inbox.locator(row(number))).to_contain_text("not accepted yet")
    assert inbox.evaluate("document.activeElement.closest('tr')?.dataset.number") == str(number)
    console.problems.clear()  # the browser logs the answer 400, as it should


def test_a_comment_is_seen_at_once_by_whoever_else_looks(console: Console) -> None:
    number = content.open_ticket("Commented")
    bobs, alices = console.open(f"/incidents/{number}"), console.open(f"/incidents/{number}")
    expect(bobs.locator(".live")).to_have_text("Live")
    alices.get_by_placeholder("Your findings").fill("Two optics flap.\nField team is on the way.")
    alices.get_by_role("button", name="Comment").click()
    expect(alices.locator(".timeline .said")).to_contain_text("Two optics flap.")
    expect(bobs.locator(".timeline .said")).to_contain_text("Two optics flap.", timeout=3000)


def test_what_is_being_typed_survives_an_update(console: Console) -> None:
    number = content.open_ticket("Busy")
    page = console.open(f"/incidents/{number}")
    expect(page.locator(".live")).to_have_text("Live")
    page.keyboard.press("h")
    page.get_by_label("Reason for the hand-over").fill("The fabric is")
    commands.comment(content.ticket_id(number), "Meanwhile", content.BOB)
    expect(page.get_by_role("region", name="Timeline")).to_contain_text("Meanwhile", timeout=3000)
    expect(page.get_by_label("Reason for the hand-over")).to_have_value("The fabric is")


def test_a_ticket_is_handed_over_with_a_reason(console: Console) -> None:
    number = content.open_ticket("Handed over", component="tor/dc1-t12")
    page = console.open(f"/incidents/{number}")
    page.keyboard.press("h")
    page.get_by_role("radio", name="Storage").check()
    page.get_by_label("Reason for the hand-over").fill("The switch is fine; the disks time out.")
    page.locator("[data-panel=hand_over]").get_by_role("button", name="Hand over").click()
    expect(page.get_by_role("region", name="Timeline")).to_contain_text("the disks time out")
    assert queries.get(str(number)).incident.team == "storage"


def test_a_ticket_is_resolved_with_the_suspect_as_the_cause(console: Console) -> None:
    number = content.report_finding()
    suspect = queries.get(str(number)).incident.component
    page = console.open(f"/incidents/{number}")
    page.keyboard.press("r")
    page.locator("[data-panel=resolve]").get_by_role("button", name="Resolve").click()
    expect(page.locator(".verdict .pill:not([data-failure])")).to_have_text("Resolved")
    assert queries.get(str(number)).incident.confirmed_cause == suspect


def test_an_action_that_comes_too_late_says_why(console: Console) -> None:
    number = content.open_ticket("Acknowledged by two")
    page = console.open(f"/incidents/{number}")
    content.without_updates(page)
    commands.acknowledge(content.ticket_id(number), content.BOB)
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("alert").filter(has_text="Not done")).to_contain_text(
        "bob acknowledged the incident"
    )
    console.problems.clear()  # the browser logs the answer 409 and the aborted request, as it should


def test_without_live_updates_the_page_polls_and_says_so(console: Console) -> None:
    page = console.watched(console.context.new_page())
    page.route("**/events?*", lambda route: route.abort())
    page.goto(f"{console.address}/")
    expect(page.locator(".live")).to_have_text("Polling every 10 s")
    console.problems.clear()  # the browser logs the aborted request


def test_filters_that_are_typed_stay_and_count(console: Console) -> None:
    content.open_ticket("Gneiss is critical", severity="critical")
    content.open_ticket("Gneiss is fine", severity="info")
    inbox = console.open("/")
    inbox.get_by_label("Search incidents").fill("severity:critical gneiss")
    inbox.keyboard.press("Enter")
    inbox.wait_for_url("**search=severity%3Acritical+gneiss*")
    expect(inbox.get_by_label("Search incidents")).to_have_value("severity:critical gneiss")
    expect(inbox.locator("tr[data-id]")).to_have_count(1)
