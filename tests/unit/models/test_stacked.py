"""Stacked networks, and the products that are faster on some processors."""

import pytest
import torch

from epo_lab.models import stacked
from epo_lab.models.stacked import StackedMLP


def networks(activation="relu"):
    """Return two networks, large enough for oneDNN, and a batch."""
    torch.manual_seed(0)
    return StackedMLP(2, 20, 3, [128, 256], activation), torch.randn(256, 20, requires_grad=True)


@pytest.mark.skipif(not stacked.ONE_DNN, reason="this torch has no oneDNN")
@pytest.mark.parametrize("learns", [True, False])
def test_values_and_gradients_do_not_depend_on_whose_products_they_are(monkeypatch, learns):
    net, inputs = networks()
    net.requires_grad_(learns)
    results, called = [], []
    products = stacked._products
    monkeypatch.setattr(stacked, "_products", lambda *args: called.append(len(args)) or products(*args))
    for one_dnn in (True, False):
        monkeypatch.setattr(stacked, "ONE_DNN", one_dnn)
        output = net(inputs)
        wanted = [inputs, *net.parameters()] if learns else [inputs]
        results.append([output, *torch.autograd.grad(output.sin().sum(), wanted)])
    # the middle layer alone is large: forward, inputs and, if it learns, weights
    assert called == ([3, 2, 2] if learns else [3, 2])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_a_network_of_the_stack_is_the_plain_one():
    net, inputs = networks("elu")
    plain = torch.nn.Sequential(
        torch.nn.Linear(20, 128), torch.nn.ELU(), torch.nn.Linear(128, 256), torch.nn.ELU(), torch.nn.Linear(256, 3)
    )
    layers = [layer for layer in plain if isinstance(layer, torch.nn.Linear)]
    with torch.no_grad():
        for weights, biases, layer in zip(net.weights, net.biases, layers, strict=True):
            weights[1], biases[1, 0] = layer.weight.T, layer.bias
    torch.testing.assert_close(net(inputs)[1], plain(inputs), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(net(inputs)[0], plain(inputs), atol=0.1)
