from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from glasshouse import InputError
from glasshouse.attacks import BASE, RMIA, LiRA, create
from glasshouse.graph import Scene
from tests.graph.scenes import on_nodes, trained_scene

DATA = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0]))


def flat(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
    return torch.zeros(len(x), 2)


def test_zero_hop_evidence_asks_without_edges_and_whole_graph_evidence_with_them() -> None:
    scene = trained_scene()
    with torch.no_grad():
        alone = scene.target(scene.data.x, torch.empty(2, 0, dtype=torch.long))
        within = scene.target(scene.data.x, scene.data.edge_index)
    for evidence, logits in ((scene.zero_hop, alone), (scene.whole_graph, within)):
        expected = torch.nn.functional.cross_entropy(logits.double(), scene.data.y, reduction="none")
        np.testing.assert_allclose(evidence.target_loss, expected, rtol=1e-5, atol=1e-12)
        assert evidence.shadow_loss.shape == (4, 240)
    assert (scene.zero_hop.target_loss != scene.whole_graph.target_loss).any()


def test_evidence_of_nodes_is_that_of_the_audited_ones_in_their_order() -> None:
    scene = Scene(DATA, flat, [flat], [[1, 0, 1]], nodes=[2, 0], ids=["a", "b", "c"])
    some = scene.of_nodes(scene.zero_hop)
    assert some.ids.tolist() == ["c", "a"]
    assert some.shadow_members.tolist() == [[True, True]]
    assert scene.evidence is scene.evidence  # every attack on records asks for it


def test_simulated_scenes_leave_out_the_target_and_its_complement() -> None:
    scene = trained_scene()
    for k, (one, members) in enumerate(scene.simulated()):
        assert one.target is scene.shadows[k]
        assert scene.shadows[k ^ 1] not in one.shadows
        assert len(one.shadows) == 2
        assert (members == scene.shadow_members[k]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": [0, 5]}, "whole numbers from 0 to 2"),
        ({"nodes": [0, 0]}, "give each audited node once"),
        ({"nodes": []}, "whole numbers|give each audited node once"),
        ({"nodes": [True, False]}, "nodes: shape"),
        ({"shadow_members": [[1, 0]]}, "shadow_members: shape"),
        ({"ids": ["a", "a", "b"]}, "id 'a' is repeated"),
    ],
)
def test_what_does_not_fit_the_graph_is_named(options: dict[str, Any], message: str) -> None:
    members = options.pop("shadow_members", [[1, 0, 1]])
    with pytest.raises(InputError, match=message):
        Scene(DATA, flat, [flat], members, **options)


def test_a_model_that_is_too_narrow_is_refused() -> None:
    data = Data(x=torch.eye(3), edge_index=DATA.edge_index, y=torch.tensor([0, 1, 2]))
    with pytest.raises(InputError, match="but the labels go up to 2"):
        _ = Scene(data, flat, [flat], [[1, 0, 1]]).zero_hop


def test_a_graph_that_cannot_be_audited_is_refused() -> None:
    with pytest.raises(InputError, match="all nodes have one label"):
        Scene(Data(x=DATA.x, edge_index=DATA.edge_index, y=torch.zeros(3)), flat, [flat], [[1, 0, 1]])


def test_the_same_masks_are_not_toggled_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = on_nodes(trained_scene(), [0, 5, 7])
    masks = np.random.default_rng(0).random((3, scene.data.num_nodes)) < 0.5
    first = scene.toggled(masks)
    monkeypatch.setattr("glasshouse.graph.scene.answer_question", None)  # a second call would fail
    assert scene.toggled(masks) is first
    with pytest.raises(TypeError):
        scene.toggled(~masks)


def test_toggled_answers_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    known = on_nodes(trained_scene(), [0, 5, 7])
    masks = np.random.default_rng(0).random((3, 2, known.data.num_nodes)) < 0.5
    monkeypatch.setattr("glasshouse.graph.scene._IN_MEMORY", 2 * known.toggled(masks[0]).nbytes)
    first, second, third = (known.toggled(each) for each in masks)
    assert known.toggled(masks[1]) is second
    assert known.toggled(masks[2]) is third
    assert known.toggled(masks[0]) is not first
    assert (known.toggled(masks[0]) == first).all()


def test_logits_beyond_the_limit_lie_in_a_file_and_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    known = trained_scene()
    first, second = (Scene(known.data, known.target, known.shadows, known.shadow_members) for _ in range(2))
    wanted = first.zero_hop
    monkeypatch.setattr("glasshouse.graph.scene._IN_MEMORY", 0)
    found = second.zero_hop
    assert found.shadow_logits is not None
    assert isinstance(second._pool.kept["zero hop"][1], np.memmap)
    assert np.array_equal(found.shadow_logits, np.asarray(wanted.shadow_logits))
    assert np.array_equal(found.target_loss, wanted.target_loss)


def test_simulated_scenes_hold_what_their_models_answer_though_each_model_is_asked_once() -> None:
    known = trained_scene()
    scene = Scene(known.data, known.target, known.shadows, known.shadow_members)
    asked: list[int] = []
    hooks = [
        model.register_forward_hook(lambda *_, k=k: asked.append(k))
        for k, model in enumerate(scene.shadows)
        if isinstance(model, torch.nn.Module)
    ]
    simulated = [one.view for one in scene.simulated()]
    found = [(one, one.zero_hop, one.whole_graph) for one in [*simulated, *(one.view for one in scene.simulated())]]
    for hook in hooks:
        hook.remove()
    assert sorted(asked) == sorted(2 * list(range(len(scene.shadows))))
    for one, *both in found:
        fresh = Scene(scene.data, one.target, one.shadows, one.shadow_members)
        for kept, wanted in zip(both, [fresh.zero_hop, fresh.whole_graph], strict=True):
            for name in ("target_loss", "shadow_loss", "shadow_members", "target_logits", "shadow_logits"):
                np.testing.assert_array_equal(getattr(kept, name), getattr(wanted, name))


@pytest.mark.parametrize("setting", ["inductive", "transductive"])
def test_attacks_on_records_look_at_the_evidence_of_a_scene(setting: Any) -> None:
    known: Any = trained_scene()
    some = np.arange(0, 240, 7)
    scene: Any = Scene(known.data, known.target, known.shadows, known.shadow_members, nodes=some, setting=setting)
    evidence = scene.evidence
    for attack in (BASE(), LiRA(), RMIA(), BASE(mode="offline"), create("hinge"), create("stacked")):
        np.testing.assert_array_equal(attack.score(scene), attack.score(evidence))
        np.testing.assert_array_equal(attack.tuned(scene).score(scene), attack.tuned(evidence).score(evidence))
        assert attack.queries(scene) == attack.queries(evidence)
        np.testing.assert_array_equal(attack.judge(scene).scores, attack.score(evidence))
    np.testing.assert_array_equal(RMIA().score(scene, known), RMIA().score(evidence, known.evidence))
    np.testing.assert_array_equal(BASE().score(evidence=scene), BASE().score(evidence))
    np.testing.assert_array_equal(BASE().flag_scores(scene), BASE().flag_scores(evidence))
    for (one, members), (other, same) in zip(
        BASE().simulated_scores(scene), BASE().simulated_scores(evidence), strict=True
    ):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(members, same)


@pytest.mark.parametrize("call", ["score", "flag_scores", "tuned", "judge", "queries"])
def test_an_attack_refuses_in_one_line_what_it_cannot_look_at(call: str) -> None:
    evidence = trained_scene().evidence
    for name in ("g-base", "g-classifier", "g-stacked"):
        with pytest.raises(InputError, match=f"^{name}: it asks models about parts of a graph; there is no graph here"):
            getattr(create(name), call)(evidence)
    for given in (evidence.target_loss, DATA):
        for name in ("base", "g-base"):
            with pytest.raises(InputError, match=f"^{name}: it cannot look at a (ndarray|Data); give Evidence, or"):
                getattr(create(name), call)(given)
