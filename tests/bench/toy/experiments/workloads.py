"""Nothing is built here: the cases of this article are about what a call does."""


def small(here):
    """Return a small module and its input."""
    import torch

    torch.manual_seed(0)
    return torch.nn.Linear(8, 8).to(here.device), torch.randn(4, 8, device=here.device)
