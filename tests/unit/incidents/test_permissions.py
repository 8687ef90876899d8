"""Roles and permissions: every role with every command."""

import pytest

from incidents.domain.permissions import (
    ADMINISTER,
    ANYWHERE,
    AT_ITS_TEAM,
    BY_A_MANAGER,
    CONFIGURE,
    ROLES,
    Person,
    may,
    refusal,
)

STORAGE = ("storage",)
PEOPLE = {
    "in no team": Person("charlie"),
    "viewer": Person("charlie", roles={"storage": "viewer"}),
    "responder": Person("bob", roles={"storage": "responder"}),
    "manager": Person("bob", roles={"storage": "manager"}),
    "admin": Person("bob", roles={"storage": "admin"}),
    "viewer elsewhere": Person("charlie", roles={"network": "viewer"}),
    "responder elsewhere": Person("charlie", roles={"network": "responder"}),
    "admin elsewhere": Person("charlie", roles={"network": "admin"}),
    "staff": Person("alice", is_staff=True),
}
OF_THE_TEAM = {"responder", "manager", "admin", "staff"}
OF_ANY_TEAM = OF_THE_TEAM | {"responder elsewhere", "admin elsewhere"}
ALLOWED = {
    "open": OF_ANY_TEAM,
    "accept": OF_ANY_TEAM,
    "analyze": OF_ANY_TEAM,
    "comment": OF_ANY_TEAM,
    "hand_over": OF_THE_TEAM,
    "record_outcome": OF_ANY_TEAM,
    "silence": OF_ANY_TEAM,
    "override": OF_THE_TEAM,
    "publish_status": OF_THE_TEAM,
    "escalate": OF_ANY_TEAM,
    "acknowledge": OF_THE_TEAM,
    "assign": OF_THE_TEAM,
    "attach_evidence": OF_THE_TEAM,
    "answer_question": OF_THE_TEAM,
    "answer_remediation": OF_THE_TEAM,
    "request_probe": OF_THE_TEAM,
    "hand_to_cluster": OF_THE_TEAM,
    "waive_proof": {"manager", "admin", "staff"},
    "bounce": OF_THE_TEAM,
    "link": OF_THE_TEAM,
    "merge": OF_THE_TEAM,
    "reopen": OF_THE_TEAM,
    "resolve": OF_THE_TEAM,
    "set_severity": OF_THE_TEAM,
    "set_title": OF_THE_TEAM,
    "snooze": OF_THE_TEAM,
    "split": OF_THE_TEAM,
    "split_off": OF_THE_TEAM,
    "unacknowledge": OF_THE_TEAM,
    "undo": OF_THE_TEAM,
    CONFIGURE: {"manager", "admin", "staff"},
    ADMINISTER: {"staff"},
}


def test_the_table_has_every_command() -> None:
    assert set(ALLOWED) == ANYWHERE | AT_ITS_TEAM | BY_A_MANAGER | {CONFIGURE, ADMINISTER}


@pytest.mark.parametrize("who", PEOPLE)
@pytest.mark.parametrize("command", ALLOWED)
def test_a_role_may_do_what_the_table_says_and_nothing_else(who: str, command: str) -> None:
    assert may(PEOPLE[who], command, STORAGE) == (who in ALLOWED[command])


@pytest.mark.parametrize("role", ROLES)
def test_who_is_in_two_teams_has_in_each_their_role_there(role: str) -> None:
    person = Person("bob", roles={"storage": role, "network": "viewer"})
    assert not may(person, "resolve", ("network",))
    assert may(person, "resolve", STORAGE) == (role != "viewer")


def test_what_belongs_to_two_teams_is_open_to_either() -> None:
    assert may(PEOPLE["responder"], "undo", ("network", "storage"))


def test_what_belongs_to_no_team_is_for_staff() -> None:
    assert not may(PEOPLE["admin"], CONFIGURE, ())
    assert may(PEOPLE["staff"], CONFIGURE, ())


def test_a_command_that_nobody_knows_is_not_allowed_by_mistake() -> None:
    with pytest.raises(KeyError):
        may(PEOPLE["staff"], "explode", STORAGE)


def test_a_refusal_says_what_is_missing_and_who_could() -> None:
    assert refusal(PEOPLE["viewer"], "resolve", STORAGE, ["bob", "alice"]) == (
        "resolve requires the role responder of storage; charlie is viewer of storage. alice, bob can do this"
    )


def test_a_refusal_names_three_of_many() -> None:
    told = refusal(PEOPLE["in no team"], "comment", (), ["a", "b", "c", "d", "e"])
    assert (
        told
        == "comment requires the role responder of any team; charlie is in no team. a, b, c and 2 more can do this"
    )


def test_a_refusal_that_only_staff_could_help_says_so() -> None:
    assert (
        refusal(PEOPLE["admin"], ADMINISTER, (), [])
        == "requires staff permissions; bob is admin of storage. Staff can do this"
    )
