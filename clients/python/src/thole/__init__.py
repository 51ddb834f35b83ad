"""Runs activities of thole, and starts and controls its instances, through a gateway: docs/gateway.md."""

from ._call import Error, Status
from .client import Client, Outcome
from .task import Cancelled, Failure, Task, TaskCancelled
from .worker import Worker

__all__ = ["Cancelled", "Client", "Error", "Failure", "Outcome", "Status", "Task", "TaskCancelled", "Worker"]
