"""What the pinned model libraries must do on every lane, so that lanes differ by torch alone."""

from __future__ import annotations

import pytest

from reportkit.plan import Here

pytestmark = [pytest.mark.torch, pytest.mark.every_lane]

HERE = Here(scale="smoke", device="cpu")


def test_bert_is_one_graph_without_a_break() -> None:
    import torch

    from experiments import workloads
    from reportkit.bench import counters

    model, inputs = workloads.bert_base(HERE)
    counters.reset()
    with torch.no_grad():
        torch.compile(model, backend="eager")(*inputs)

    counts = counters.read()
    assert (counts["unique_graphs"], counts["graph_breaks"]) == (1, 0)


def test_gpt2_generation_is_three_graphs_without_a_break() -> None:
    import torch

    from experiments import workloads
    from reportkit.bench import counters

    model, (tokens,) = workloads.gpt2_tiny(HERE)
    counters.reset()
    model.forward = torch.compile(model.forward, backend="eager")
    mask = torch.ones_like(tokens)
    generated = model.generate(
        tokens, attention_mask=mask, min_new_tokens=8, max_new_tokens=8, do_sample=False, pad_token_id=0
    )

    counts = counters.read()
    assert generated.shape[1] == tokens.shape[1] + 8
    assert (counts["unique_graphs"], counts["graph_breaks"]) == (3, 0)


def test_every_counter_is_a_number_or_says_that_it_does_not_exist() -> None:
    import torch

    from experiments import workloads
    from reportkit.bench import counters

    model, inputs = workloads.gelu_chain(HERE)
    counters.reset()
    assert counters.unique_graphs() == 0
    torch.compile(model, backend="eager")(*inputs)

    counts = counters.read()
    assert counts["unique_graphs"] == counters.unique_graphs() == 1
    absent = {name for name, count in counts.items() if count is None}
    has_cache = hasattr(__import__("torch._functorch.config")._functorch.config, "enable_autograd_cache")
    assert absent == (set() if has_cache else {"autograd_cache_hit", "autograd_cache_miss"})


def test_switches_are_read_back_as_they_were_set() -> None:
    import torch

    from reportkit.bench import case, counters

    before = torch.get_float32_matmul_precision()
    try:
        case.apply_setting("float32_matmul_precision", "high")
        assert counters.switches()["float32_matmul_precision"] == "high"
        assert counters.switches()["cuda.matmul.allow_tf32"] is True
    finally:
        torch.set_float32_matmul_precision(before)
    with pytest.raises(AttributeError, match=r"has no setting torch\._dynamo\.config\.no_such_switch"):
        case.apply_setting("torch._dynamo.config.no_such_switch", 1)
