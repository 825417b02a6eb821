"""Encoders, distributions and actor-critics: shapes, densities, and where gradients may go."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from rl_training.errors import ConfigError, SpaceError
from rl_training.models import CNNDrQModel, CNNDrQv2Model, CompactCNN, MLPPPGModel, NatureCNN
from rl_training.models.cnn.blocks import reads_blocks
from rl_training.models.cnn.encoder import encode, in_chunks, prepared, scaled
from rl_training.models.distributions import Categorical, Gaussian
from rl_training.models.precision import encoder_dtype
from rl_training.models.squashed_gaussian import squashed_sample, tanh_log_slope


def has_gradient(module: nn.Module) -> bool:
    return any(weight.grad is not None and bool(weight.grad.any()) for weight in module.parameters())


def images(*shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8)


# Encoders


def test_the_compact_encoder_is_as_light_as_promised() -> None:
    assert sum(weight.numel() for weight in CompactCNN((2, 40, 80)).parameters()) == 108_720


def test_features_and_weights_equal_stable_baselines_nature_cnn() -> None:
    from gymnasium.spaces import Box
    from stable_baselines3.common.torch_layers import NatureCNN as SB3NatureCNN

    theirs = SB3NatureCNN(Box(0, 255, (3, 60, 80), np.uint8), features_dim=64)
    ours = NatureCNN((3, 60, 80), features_dim=64)
    ours.load_state_dict(theirs.state_dict())
    batch = images(4, 3, 60, 80)
    torch.testing.assert_close(encode(ours, batch, torch.float32), theirs(batch.float() / 255), atol=1e-5, rtol=1e-5)


def test_bfloat16_features_are_float32_close_to_the_exact_ones() -> None:
    encoder = CompactCNN((2, 40, 80))
    batch = images(8, 2, 40, 80)
    exact, fast = encode(encoder, batch, torch.float32), encode(encoder, batch, torch.bfloat16)
    assert fast.dtype == torch.float32
    assert (fast - exact).abs().max() < 0.03 * exact.abs().max()


def test_pixels_are_scaled_and_laid_out_channels_last() -> None:
    x = scaled(images(2, 3, 8, 8).fill_(255), torch.float32)
    assert torch.equal(x, torch.ones_like(x))
    assert x.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(("height", "width"), [(60, 80), (62, 80), (60, 82)])
def test_blocks_of_pixels_mean_what_pixels_mean(height: int, width: int) -> None:
    """Where height and width are multiples of four, the first convolution reads blocks; elsewhere pixels."""
    encoder = NatureCNN((3, height, width), features_dim=16)
    batch = images(5, height, width, 3).permute(0, 3, 1, 2)  # as environments that draw channels last give them
    inputs = prepared(batch, encoder, torch.float32)
    assert inputs.shape[1] == (48 if (height, width) == (60, 80) else 3)
    expected = encoder(batch.float() / 255)
    for given in (batch, inputs):
        torch.testing.assert_close(encode(encoder, given, torch.float32), expected, atol=1e-5, rtol=1e-4)
    uneven = nn.Sequential(nn.Conv2d(3, 4, 8, 4, padding=2))
    assert not reads_blocks(uneven[0], batch)


def test_a_large_batch_in_chunks_has_the_features_and_gradients_of_the_whole() -> None:
    encoder = NatureCNN((3, 120, 160), features_dim=16)
    batch = images(70, 3, 120, 160)
    assert [len(chunk) for chunk in in_chunks(batch, 3)] == [24, 24, 22]
    whole = encoder(scaled(batch, torch.float32))
    whole.square().sum().backward()
    gradients = [weight.grad.clone() for weight in encoder.parameters()]
    encoder.zero_grad()
    parts = encode(encoder, batch, torch.float32)
    parts.square().sum().backward()
    torch.testing.assert_close(parts, whole, atol=1e-5, rtol=1e-4)
    for weight, gradient in zip(encoder.parameters(), gradients):
        # Loose enough for a unit within rounding of zero, which may be rectified in one of the two only.
        assert (weight.grad - gradient).abs().max() < 5e-3 * gradient.abs().max()


def test_images_too_small_are_named() -> None:
    with pytest.raises(SpaceError, match="12×16"):
        NatureCNN((3, 12, 16))
    with pytest.raises(ConfigError, match="Did you mean 'compact'"):
        CNNDrQModel((3, 84, 84), 1, encoder="compct")
    with pytest.raises(ConfigError, match="precision"):
        encoder_dtype("bfloat", torch.device("cpu"))


# Distributions


def test_categorical_against_torch() -> None:
    logits, actions = torch.randn(7, 4), torch.randint(0, 4, (7, 1))
    ours = Categorical()
    theirs = torch.distributions.Categorical(logits=logits)
    log_prob, entropy = ours.log_prob_and_entropy(logits, actions)
    torch.testing.assert_close(log_prob, theirs.log_prob(actions.squeeze(-1)))
    torch.testing.assert_close(entropy, theirs.entropy())
    torch.testing.assert_close(ours.log_prob(logits, actions), log_prob)


def test_categorical_draws_follow_the_softmax() -> None:
    torch.manual_seed(0)
    logits = np.log(np.array([[0.1, 0.2, 0.7]], dtype=np.float32))
    draws = Categorical().sample(logits, Categorical().draw_noise(40_000, 3))
    np.testing.assert_allclose(np.bincount(draws) / 40_000, [0.1, 0.2, 0.7], atol=0.01)


def test_gaussian_against_torch() -> None:
    log_std, mean, actions = torch.tensor([0.3, -1.0]), torch.randn(5, 2), torch.randn(5, 2)
    theirs = torch.distributions.Normal(mean, log_std.exp())
    log_prob, entropy = Gaussian(log_std).log_prob_and_entropy(mean, actions)
    torch.testing.assert_close(log_prob, theirs.log_prob(actions).sum(-1))
    torch.testing.assert_close(entropy, theirs.entropy().sum(-1))


def test_gaussian_draws_have_the_policys_deviation() -> None:
    torch.manual_seed(0)
    gaussian = Gaussian(torch.tensor([0.0, math.log(0.1)]))
    draws = gaussian.sample(np.array([5.0, -2.0], dtype=np.float32), gaussian.draw_noise(20_000, 2))
    np.testing.assert_allclose(draws.mean(0), [5.0, -2.0], atol=0.03)
    np.testing.assert_allclose(draws.std(0), [1.0, 0.1], rtol=0.03)


def test_squashing_is_exact_where_the_naive_formula_is_not() -> None:
    u = torch.tensor([0.0, 1.0, 8.0, -30.0])
    exact = np.log(4.0) - 2 * np.abs(u.numpy()) - 2 * np.log1p(np.exp(-2 * np.abs(u.numpy())))
    np.testing.assert_allclose(tanh_log_slope(u).numpy(), exact, rtol=1e-5, atol=1e-6)


def test_squashed_density_integrates_to_one() -> None:
    torch.manual_seed(0)
    mean, log_std = torch.zeros(200_000, 1), torch.full((200_000, 1), -0.5)
    actions, log_prob = squashed_sample(mean, log_std)
    # E_π[1/π] over a window is the window's width.
    inside = (actions.abs() < 0.5).squeeze(-1)
    assert ((-log_prob).exp() * inside).mean().item() == pytest.approx(1.0, abs=0.02)


# Actor-critics


def test_ppg_model_speaks_like_the_other_on_policy_models() -> None:
    model = MLPPPGModel(4, 3)
    observations = torch.randn(6, 4)
    actions, log_prob, values = model.act(observations)
    assert actions.shape == log_prob.shape == values.shape == (6,)
    again, entropy, values_again = model.evaluate_actions(observations, actions)
    torch.testing.assert_close(again, log_prob)
    torch.testing.assert_close(values_again, values)
    assert (entropy > 1.0).all()  # a new policy is close to uniform: log 3 = 1.0986
    deterministic, _, _ = model.act(observations, deterministic=True)
    assert torch.equal(deterministic, model.act(observations, deterministic=True)[0])


@pytest.mark.parametrize("detach", [False, True])
def test_detached_value_head_leaves_the_trunk_alone_in_the_policy_phase_only(detach: bool) -> None:
    model = MLPPPGModel(4, 2, detach_value=detach)
    model.values(model.features(torch.randn(8, 4))).sum().backward()
    assert has_gradient(model.trunk) is not detach
    model.zero_grad()
    model.auxiliary(torch.randn(8, 4)).values.sum().backward()
    assert has_gradient(model.trunk)


def test_ppg_model_drives_from_images() -> None:
    model = MLPPPGModel(0, 5, hidden=(), encoder=CompactCNN((2, 40, 80)))
    assert model.act(images(3, 2, 40, 80))[0].shape == (3,)
    assert model.auxiliary(images(3, 2, 40, 80)).logits.shape == (3, 5)


@pytest.mark.parametrize("share", [False, True])
def test_only_the_critic_trains_the_encoder_it_shares(share: bool) -> None:
    model = CNNDrQModel((3, 44, 44), 2, share_encoder=share)
    batch = images(4, 3, 44, 44)
    actions, log_prob = model.sample_actions(model.actor_features(batch))
    (actions.sum() + log_prob.sum()).backward()
    assert has_gradient(model.actor)
    assert not has_gradient(model.critic.encoder)
    assert (model.actor.encoder is None) is share
    sum(model.critic(model.critic_features(batch), actions.detach())).sum().backward()
    assert has_gradient(model.critic.encoder)
    assert not has_gradient(model.critic_target)


def test_drq_actions_are_bounded_and_deterministic_on_request() -> None:
    model = CNNDrQModel((3, 44, 44), 2)
    batch = images(16, 3, 44, 44)
    assert model.act(batch).abs().max() < 1
    assert torch.equal(model.act(batch, deterministic=True), model.act(batch, deterministic=True))


def test_the_slow_copy_moves_by_its_share() -> None:
    model = CNNDrQModel((3, 44, 44), 1)
    before = [weight.clone() for weight in model.critic_target.parameters()]
    with torch.no_grad():
        for weight in model.critic.parameters():
            weight += 1.0
    model.update_target(0.25)
    for old, new in zip(before, model.critic_target.parameters()):
        torch.testing.assert_close(new, old + 0.25)


def test_drqv2_noise_is_clipped_and_lets_the_gradient_through() -> None:
    torch.manual_seed(0)
    model = CNNDrQv2Model((3, 44, 44), 1, encoder="nature")
    features = torch.randn(500, 50)
    mean = model.mean_actions(features)
    noisy = model.noisy_actions(features, std=5.0, clip=0.3)
    assert (noisy - mean).abs().max() <= 0.3 + 1e-6
    assert noisy.abs().max() <= 1.0
    assert model.noisy_actions(features, std=5.0).abs().max() <= 1.0
    noisy.sum().backward()
    assert has_gradient(model.actor)
