"""In which number format an image encoder runs: bfloat16 where the processor multiplies it natively, else float32.

Only encoders use it. Heads and losses stay in float32, where a small difference of two large numbers is what matters.
"""

from __future__ import annotations

import torch

from rl_training.errors import ConfigError, did_you_mean

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def has_native_bfloat16(device: torch.device) -> bool:
    """Whether matrix products in bfloat16 are faster than in float32 there, rather than emulated."""
    if device.type == "cuda":
        return bool(torch.cuda.get_device_capability(device) >= (8, 0))
    if device.type != "cpu":
        return False
    capabilities = getattr(torch.cpu, "get_capabilities", None)
    if capabilities is not None:
        found = capabilities()
        return bool(found.get("avx512_bf16") or found.get("amx_bf16") or found.get("bf16"))
    return bool(torch.cpu._is_avx512_bf16_supported())


def encoder_dtype(precision: str, device: torch.device) -> torch.dtype:
    """The format named ``precision``; ``auto`` asks the device."""
    if precision == "auto":
        return torch.bfloat16 if has_native_bfloat16(device) else torch.float32
    if precision not in _DTYPES:
        raise ConfigError(f"There is no precision '{precision}'.{did_you_mean(precision, ['auto', *_DTYPES])}")
    return _DTYPES[precision]
