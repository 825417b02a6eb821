"""How much of this machine's own peak the updates reach: the peaks are measured here, the work of an update counted.

``GEMM`` is a product of two matrices of 1536, ``conv`` the second layer of NatureCNN forward and backward, channels
last; both at their best of several tries.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils.flop_counter import FlopCounterMode

import rl_training
from benchmarks.algorithms.measure import Images, Row, best_of_turns, row
from benchmarks.algorithms.speed import drq_models

SIDE = 1536


def peaks(turns: int) -> dict[str, float]:
    """GFLOP/s of matrix products and convolutions in both formats."""
    work: dict[str, Callable[[], object]] = {}
    flops: dict[str, float] = {}
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        a, b = torch.randn(2, SIDE, SIDE).to(dtype)
        work[f"GEMM {name}"] = lambda a=a, b=b: a @ b
        flops[f"GEMM {name}"] = 2.0 * SIDE**3
        conv = torch.nn.Conv2d(32, 64, 4, 2).to(dtype).to(memory_format=torch.channels_last)
        images = torch.randn(32, 32, 29, 39).to(dtype).contiguous(memory_format=torch.channels_last).requires_grad_()
        outputs = conv(images)
        gradient = torch.randn_like(outputs)
        inputs = [images, *conv.parameters()]
        work[f"conv {name}"] = lambda c=conv, x=images, i=inputs, g=gradient: torch.autograd.grad(c(x), i, g)
        flops[f"conv {name}"] = 3 * 2.0 * outputs.numel() * 32 * 16
    best_of_turns(work, 2)
    return {name: flops[name] / seconds / 1e9 for name, seconds in best_of_turns(work, turns).items()}


def roofline(turns: int) -> list[Row]:
    """The peaks, then what each update reaches of the peak of a convolution in its format."""
    found = peaks(5 * turns)
    rows = [row("peak", name, value, "GFLOP/s") for name, value in found.items()]
    settings = {"n_steps": 256, "batch_size": 64, "n_epochs": 1, "device": "cpu"}
    work: dict[str, Callable[[], object]] = {}
    for precision in ("bfloat16", "float32"):
        ppo = rl_training.PPO("CnnPolicy", Images((3, 120, 160)), precision=precision, **settings).learn(256)
        work[f"PPO update 3×120×160 {precision}"] = ppo.train
    for name, model in drq_models().items():
        precision = "float32" if "float32" in name else "bfloat16"
        work[f"{name.removesuffix(' float32')} update 9×84×84 {precision}"] = lambda m=model: m.train(1, 128)
    seconds = best_of_turns(work, turns)
    for name, piece in work.items():
        with FlopCounterMode(display=False) as counter:
            piece()
        reached = counter.get_total_flops() / seconds[name] / 1e9
        peak = found[f"conv {name.split()[-1]}"]
        rows.append(row(f"{name}: {reached / peak:.0%} of conv", "ours", reached, "GFLOP/s"))
    return rows
