"""The lineage log: one JSON line for every generation, from which its decision can be replayed."""

from __future__ import annotations

import math
from typing import Any

import torch

from epo_lab.base.options import split

from .genetics import EvolutionOptions, breed


def replay(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Decide a logged generation again from its fitness, settings and seed; return slots, parents and genes."""
    genes = torch.zeros(len(record["fitness"]), len(record["mutation_scale"]))
    for child in record["children"]:
        for slot, gene in zip(child["parents"], child["parent_genes"], strict=True):
            genes[slot] = torch.tensor(gene)
    values = [math.nan if value is None else value for value in record["fitness"]]
    _, children = breed(
        torch.tensor(values, dtype=torch.float64),
        genes,
        EvolutionOptions(**split(EvolutionOptions, record["cfg"])[0]),
        torch.tensor(record["mutation_scale"]),
        record["seed"],
        record["check"],
        torch.tensor(record["previous_elites"]) if "previous_elites" in record else None,
        gene_scale=record.get("gene_scale", 1.0),
        spared=record.get("spared", ()),
        choose=lambda genes, count: record["chosen"],
    )
    return [{"slot": child.slot, "parents": list(child.parents), "gene": child.gene.tolist()} for child in children]
