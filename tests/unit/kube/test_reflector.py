# SPDX-License-Identifier: MIT
"""Lists and watches against real HTTP with real faults: the copy always comes to be the API's state."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from kubectl_pacto.errors import MalformedObject
from kubectl_pacto.kube.client import Client, Waiting
from kubectl_pacto.kube.errors import ApiGone
from kubectl_pacto.kube.lists import list_all, with_query
from kubectl_pacto.kube.reflector import SILENCE_SECONDS, Broken, Key, Reflector, Timing
from kubectl_pacto.kube.retry import RetryPolicy
from kubectl_pacto.kube.stream import READ_TIMEOUT_SECONDS, Watch
from kubectl_pacto.kube.transport import HttpTransport
from tests.support.fake_watch_api import FakeWatchApi, WatchFault, serve_watches

PATH = "/api/v1/things"
QUICK = Timing(
    watch_seconds=60,
    missing_seconds=0.02,
    retries=RetryPolicy(attempts=1 << 30, first_delay=0.01, longest_delay=0.05),
    page=2,
    silence_seconds=0.4,
)


class Copy:
    """A sink that counts."""

    def __init__(self) -> None:
        self.items: dict[Key, Any] = {}
        self.puts = 0

    def replace(self, items: Mapping[Key, Any]) -> None:
        self.items = dict(items)

    def put(self, key: Key, item: Any) -> None:
        self.items[key] = item
        self.puts += 1

    def drop(self, key: Key) -> None:
        self.items.pop(key, None)

    @property
    def values(self) -> dict[str, Any]:
        return {name: item for (_, name), item in sorted(self.items.items())}


class Tokens:
    """A token that can be renewed."""

    def __init__(self, *values: str) -> None:
        self.values = list(values)

    def token(self) -> str:
        return self.values[0]

    def reread(self) -> bool:
        if len(self.values) > 1:
            self.values.pop(0)
            return True
        return False


class Running:
    """A reflector in its thread."""

    def __init__(
        self,
        api: FakeWatchApi,
        *,
        timeout: float = 5.0,
        tokens: Tokens | None = None,
        optional: bool = False,
        timing: Timing = QUICK,
    ) -> None:
        self.copy = Copy()
        self.reflector = Reflector(PATH, decode, self.copy, optional=optional, timing=timing)
        self.client = client_of(api, tokens)
        self.watch = Watch(api.server, tokens, read_timeout=timeout)
        self.thread = threading.Thread(target=self.reflector.run, args=(self.client, self.watch), daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.reflector.stop()
        self.thread.join(5)
        assert not self.thread.is_alive()
        self.client.close()


def client_of(api: FakeWatchApi, tokens: Tokens | None = None) -> Client:
    waiting = Waiting(sleep=lambda _: None)
    return Client(HttpTransport(api.server, 5.0), tokens, retries=RetryPolicy(2), waiting=waiting)


def decode(raw: dict[str, Any]) -> int:
    number = raw["spec"].get("number")
    if not isinstance(number, int):
        raise MalformedObject("spec.number", "must be a number")
    return number


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline, "it did not happen within 5 s"
        time.sleep(0.005)


@pytest.fixture
def api() -> Iterator[FakeWatchApi]:
    fake = FakeWatchApi()
    with serve_watches(fake):
        yield fake


@pytest.fixture
def start(api: FakeWatchApi) -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def begin(**given: Any) -> Running:
        running.append(Running(api, **given))
        return running[-1]

    yield begin
    for one in running:
        one.stop()


Start = Callable[..., Running]


@pytest.fixture
def client(api: FakeWatchApi) -> Iterator[Client]:
    made = client_of(api)
    yield made
    made.close()


def test_a_list_comes_in_pages_of_one_version(api: FakeWatchApi, client: Client) -> None:
    for number in range(7):
        api.put(f"a{number}", number=number)
    found = list_all(client, PATH, lambda raw: raw["spec"]["number"], limit=3)
    assert sorted(found.items) == list(range(7))
    assert found.version == "107"
    assert [bool(query.get("continue")) for query in api.lists] == [False, True, True]


def test_an_expired_page_starts_the_list_over(api: FakeWatchApi, client: Client) -> None:
    for number in range(4):
        api.put(f"a{number}", number=number)
    api.page_faults.append(410)
    assert len(list_all(client, PATH, decode, limit=2).items) == 4
    assert len(api.lists) == 4


def test_pages_that_always_expire_end_in_one_piece(api: FakeWatchApi, client: Client) -> None:
    for number in range(4):
        api.put(f"a{number}", number=number)
    api.page_faults.extend([410] * 10)
    assert len(list_all(client, PATH, decode, limit=2).items) == 4
    assert "limit" not in api.lists[-1]


def test_a_list_that_is_gone_even_in_one_piece_is_an_error(api: FakeWatchApi, client: Client) -> None:
    api.list_faults.extend([410] * 4)
    with pytest.raises(ApiGone):
        list_all(client, PATH, decode)


def test_a_path_keeps_its_query_free_of_what_is_empty() -> None:
    assert with_query("/a", limit=2, more="") == "/a?limit=2"
    assert with_query("/a", more="") == "/a"


def test_changes_arrive_and_managed_fields_never_do(api: FakeWatchApi, start: Start) -> None:
    for number in range(3):
        api.put(f"a{number}", number=number)
    run = start()
    assert run.reflector.wait_listed(5)
    assert run.copy.values == {"a0": 0, "a1": 1, "a2": 2}
    api.put("a1", number=10)
    api.delete("a0")
    api.put("b", number=3)
    until(lambda: run.copy.values == {"a1": 10, "a2": 2, "b": 3})
    assert run.reflector.lists == 1
    assert run.reflector.trouble == ""


def test_a_watch_asks_for_bookmarks_and_an_end(api: FakeWatchApi, start: Start) -> None:
    start()
    until(lambda: bool(api.watches))
    (query,) = api.watches
    assert query["allowWatchBookmarks"] == "true"
    assert query["resourceVersion"] == "100"
    assert 60 <= int(query["timeoutSeconds"]) <= 120


def test_a_watch_goes_on_from_its_bookmark_after_an_end(api: FakeWatchApi, start: Start) -> None:
    run = start()
    api.put("a", number=1)
    until(lambda: run.copy.values == {"a": 1})
    api.version = 500
    api.bookmark()
    time.sleep(0.05)
    api.close()
    until(lambda: len(api.watches) > 1)
    assert api.watches[-1]["resourceVersion"] == "500"
    assert run.reflector.lists == 1


@pytest.mark.parametrize("fault", [WatchFault(status=410), WatchFault(error=410)], ids=["status", "event"])
def test_a_version_that_is_gone_lists_again(api: FakeWatchApi, start: Start, fault: WatchFault) -> None:
    api.watch_faults.append(fault)
    run = start()
    until(lambda: run.reflector.lists == 2)
    api.put("a", number=1)
    until(lambda: run.copy.values == {"a": 1})


def test_what_was_deleted_before_a_new_list_is_gone(api: FakeWatchApi, start: Start) -> None:
    api.put("a", number=1)
    api.put("b", number=2)
    run = start(timeout=0.2)
    until(lambda: run.copy.values == {"a": 1, "b": 2})
    api.watch_faults.extend([WatchFault(silent=True)] * 2)
    api.error(500)  # ends the watch; the next ones are silent while an object goes
    until(lambda: len(api.watches) > 1)
    api.delete("a")
    api.compact()
    until(lambda: run.copy.values == {"b": 2})
    assert run.reflector.lists >= 2


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_server_is_asked_again_from_the_same_version(
    api: FakeWatchApi, start: Start, code: int
) -> None:
    api.watch_faults.extend([WatchFault(status=code), WatchFault(error=code), WatchFault(ends=True)])
    run = start()
    until(lambda: len(api.watches) == 4)
    assert {query["resourceVersion"] for query in api.watches} == {"100"}
    api.put("a", number=1)
    until(lambda: run.copy.values == {"a": 1})
    assert run.reflector.lists == 1


def test_a_half_open_watch_is_given_up_and_nothing_is_missed(api: FakeWatchApi, start: Start) -> None:
    api.watch_faults.append(WatchFault(silent=True))
    run = start(timeout=0.2)
    until(lambda: len(api.watches) == 1)
    api.put("a", number=1)
    until(lambda: run.copy.values == {"a": 1})
    assert run.reflector.lists == 1


def test_a_quiet_kind_is_watched_again_at_once_and_nobody_is_warned(
    api: FakeWatchApi, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    api.watch_faults.extend([WatchFault(silent=True)] * 3)
    slow = RetryPolicy(1 << 30, first_delay=600.0, longest_delay=600.0)
    never = replace(QUICK, retries=slow, silence_seconds=SILENCE_SECONDS)
    run = Running(api, timeout=1.1, timing=never)
    until(lambda: len(api.watches) == 4)
    run.stop()
    assert run.reflector.lists == 1
    assert READ_TIMEOUT_SECONDS < SILENCE_SECONDS, "or each silence would list a quiet kind again"
    assert "said nothing for 1 s and is opened again" in caplog.text
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_silence_is_told_and_over_with_the_next_sign(api: FakeWatchApi, start: Start) -> None:
    api.watch_faults.append(WatchFault(silent=True))
    run = start(timeout=0.8)
    until(lambda: "no sign of life" in run.reflector.trouble)
    until(lambda: run.reflector.trouble == "")


def test_a_watch_that_comes_back_does_not_vouch_for_what_it_has_not_told_yet(
    api: FakeWatchApi, start: Start
) -> None:
    """What changed meanwhile is on its way, and nobody says when all of it is here."""
    run = start()
    api.put("a", number=1)
    until(lambda: run.copy.values == {"a": 1})
    api.watch_faults.extend([WatchFault(status=503)] * 10_000)
    api.error(500)
    until(lambda: run.reflector.trouble != "")
    api.put("a", number=2)
    api.watch_faults.clear()
    api.watch_faults.append(WatchFault(silent=True))
    until(lambda: run.reflector.trouble == "")
    assert run.copy.values == {"a": 2}
    assert run.reflector.lists == 2


def test_a_list_that_fails_is_tried_again_and_told_meanwhile(api: FakeWatchApi, start: Start) -> None:
    api.list_faults.extend([403] * 40)
    run = start()
    until(lambda: "not allowed" in run.reflector.trouble)
    assert not run.reflector.is_listed
    until(lambda: run.reflector.is_listed)
    assert run.reflector.trouble == ""


def test_an_optional_kind_that_is_missing_is_empty_until_it_comes(api: FakeWatchApi, start: Start) -> None:
    api.list_faults.extend([404] * 3)
    api.put("a", number=1)
    run = start(optional=True)
    assert run.reflector.wait_listed(5)
    until(lambda: run.copy.values == {"a": 1})


def test_a_broken_object_among_good_ones_is_kept_as_broken(api: FakeWatchApi, start: Start) -> None:
    api.put("bad", number="x")
    api.put("good", number=1)
    run = start()
    run.reflector.wait_listed(5)
    assert isinstance(run.copy.values["bad"], Broken)
    assert run.copy.values["good"] == 1
    api.put("bad", number=2)
    until(lambda: run.copy.values == {"bad": 2, "good": 1})


def test_a_refused_token_is_read_again(api: FakeWatchApi, start: Start) -> None:
    api.tokens = {"new"}
    run = start(tokens=Tokens("old", "new"))
    assert run.reflector.wait_listed(5)
    api.tokens = {"newer"}
    run.client._tokens.values.append("newer")  # type: ignore[union-attr]
    api.error(500)
    api.put("a", number=1)
    until(lambda: run.copy.values == {"a": 1})


def test_stop_ends_a_watch_that_is_reading(api: FakeWatchApi, start: Start) -> None:
    run = start(timeout=60)
    until(lambda: len(api.watches) == 1)
    began = time.monotonic()
    run.stop()
    assert time.monotonic() - began < 2


def test_a_server_that_ends_watches_at_once_is_not_asked_in_a_loop(api: FakeWatchApi, start: Start) -> None:
    api.watch_faults.extend([WatchFault(ends=True)] * 1000)
    start()
    time.sleep(0.5)
    assert len(api.watches) < 60
