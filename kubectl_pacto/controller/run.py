# SPDX-License-Identifier: MIT
"""`pacto operator`: wires the parts, serves probes and metrics, and ends cleanly on SIGTERM."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack

from kubectl_pacto.controller.connection import Connection, connect
from kubectl_pacto.controller.election import Election
from kubectl_pacto.controller.health import METRICS_CLIENTS, Server
from kubectl_pacto.controller.operator import Operator
from kubectl_pacto.controller.options import Settings, settings
from kubectl_pacto.controller.serving import Certificates, Guard
from kubectl_pacto.stopping import set_when_told

LOST_THE_LEAD = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operator until SIGTERM or SIGINT; 1 when another took the lead. Raises PactoError."""
    told = settings(sys.argv[1:] if arguments is None else arguments)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    stop = threading.Event()
    set_when_told(stop)
    return run(told, stop)


def run(told: Settings, stop: threading.Event) -> int:
    """Run the operator until `stop` is set; 1 when another took the lead. Raises PactoError."""
    connection = connect(told.kubeconfig)
    with ExitStack() as undo:
        # released last: nobody else may lead while a worker of ours still writes
        candidate = connection.hasty_client()
        undo.callback(candidate.close)
        election = Election(candidate, told.namespace, told.identity) if told.leader_elect else None
        if election is not None:
            undo.callback(election.release)
        operator = Operator(told, connection)
        undo.callback(operator.close)
        leads = election if election is not None else _Alone()
        operator.metrics.live("pacto_leader", lambda: [((), float(leads.leads))])
        _serve(undo, told, operator, connection)
        operator.watch()
        if election is None:
            operator.lead()
            stop.wait()
            return 0
        return 0 if election.run(stop, operator.lead, operator.rest) else LOST_THE_LEAD


class _Alone:
    """No election: this process leads."""

    leads = True


def _serve(undo: ExitStack, told: Settings, operator: Operator, connection: Connection) -> None:
    def answer(problem: str) -> tuple[int, str]:
        return (503, f"{problem}\n") if problem else (200, "ok\n")

    if told.health_address:
        paths = {
            "/healthz": lambda: answer(operator.is_ill()),
            "/readyz": lambda: answer(operator.is_ready()),
        }
        undo.enter_context(Server(told.health_address, paths))
    if told.metrics_address:
        metrics = {"/metrics": lambda: (200, operator.metrics.text())}
        if told.metrics_certificate is None:
            undo.enter_context(Server(told.metrics_address, metrics, most=METRICS_CLIENTS))
            return
        context = Certificates(told.metrics_certificate).context
        guard = Guard(connection.hasty_client).check
        served = Server(told.metrics_address, metrics, context=context, guard=guard, most=METRICS_CLIENTS)
        undo.enter_context(served)
