"""Which adapters this daemon has, for whoever reads the database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agtmux.domain.timestamps import Timestamp
from agtmux.store.database import Database
from agtmux.store.writer import Transaction


@dataclass(frozen=True, slots=True)
class AdapterRow:
    adapter_name: str
    agent_type: str
    # Of the contract that it is made for.
    version: str
    capabilities: Mapping[str, bool]


async def note_adapters(database: Database, adapters: Iterable[AdapterRow], now: Timestamp) -> None:
    """These and no others; what has not changed is left as it is, and so is whether one is enabled."""
    rows = [
        (each.adapter_name, each.agent_type, each.version, json.dumps(dict(each.capabilities))) for each in adapters
    ]

    def job(tx: Transaction) -> None:
        known = set(tx.fetch("SELECT adapter_name, agent_type, version, capabilities FROM adapters"))
        for name in {row[0] for row in known} - {row[0] for row in rows}:
            tx.execute("DELETE FROM adapters WHERE adapter_name = ?", (name,))
        for row in set(rows) - known:
            tx.execute(
                "INSERT INTO adapters (adapter_name, agent_type, version, capabilities, updated_at)"
                " VALUES (?, ?, ?, ?, ?) ON CONFLICT (adapter_name) DO UPDATE SET agent_type = excluded.agent_type,"
                " version = excluded.version, capabilities = excluded.capabilities, updated_at = excluded.updated_at",
                (*row, now),
            )

    await database.writer.write(job)


async def disabled_agents(database: Database) -> set[str]:
    """The types of agents whose adapter is switched off in the database."""
    return {str(row[0]) for row in await database.read("SELECT agent_type FROM adapters WHERE NOT enabled")}
