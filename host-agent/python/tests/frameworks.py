"""Three ranks train with the framework named by the argument: accelerate, transformers or lightning. Exits with 0 if all
ranks have the same weights in the end, and the switch has made the sums.
"""

import contextlib
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, Dataset

import weir.torch

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
# As torchrun sets them for one process per host.
os.environ.update(LOCAL_RANK="0", NODE_RANK=str(rank), LOCAL_WORLD_SIZE="1", GROUP_RANK=str(rank))


class Numbers(Dataset):
    """Inputs, and their products with a fixed matrix."""

    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        self.inputs = torch.randn(96, 8, generator=generator)
        self.targets = self.inputs @ torch.randn(8, 2, generator=generator)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, at):
        return {"inputs": self.inputs[at], "targets": self.targets[at]}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(8, 2)

    def forward(self, inputs, targets):
        return {"loss": mse_loss(self.layer(inputs), targets)}


def by_accelerate():
    # The group is created first: accelerate uses an existing one.
    dist.init_process_group("weir")
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = DataLoader(Numbers(), batch_size=8)
    ddp, optimizer, batches = accelerator.prepare(model, optimizer, batches)
    assert accelerator.num_processes == size, accelerator.num_processes
    for _ in range(3):
        for batch in batches:
            optimizer.zero_grad()
            accelerator.backward(ddp(**batch)["loss"])
            optimizer.step()
    return model


def by_transformers():
    # The group is created first, without `ddp_backend`, which accepts only backends that transformers knows.
    dist.init_process_group("weir")
    from transformers import Trainer, TrainingArguments

    model = Model()
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        num_train_epochs=3,
        per_device_train_batch_size=8,
        learning_rate=0.1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        label_names=["targets"],
    )
    assert arguments.world_size == size, arguments.world_size
    Trainer(model=model, args=arguments, train_dataset=Numbers()).train()
    return model


def by_lightning():
    import lightning
    from lightning.pytorch.strategies import DDPStrategy

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def training_step(self, batch, _):
            return self.model(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    module = Module()
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        num_nodes=size,
        strategy=DDPStrategy(process_group_backend="weir"),
        max_epochs=3,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, DataLoader(Numbers(), batch_size=8))
    return module.model


train = {"accelerate": by_accelerate, "transformers": by_transformers, "lightning": by_lightning}[sys.argv[1]]
# Frameworks print other lines, too.
with contextlib.redirect_stdout(sys.stderr):
    model = train()
assert dist.get_backend() == "weir", dist.get_backend()
# 3 epochs of 4 batches per rank.
operations = weir.torch.counters()["operations"]
assert operations >= 12, operations
weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
least, most = weights.clone(), weights.clone()
dist.all_reduce(least, op=dist.ReduceOp.MIN)
dist.all_reduce(most, op=dist.ReduceOp.MAX)
assert torch.equal(least, most), (most - least).max()
with torch.no_grad():
    numbers = Numbers()
    before, after = Model()(numbers.inputs, numbers.targets), model(numbers.inputs, numbers.targets)
assert after["loss"] < before["loss"] / 2, (before, after)
print("right", flush=True)
dist.barrier()
