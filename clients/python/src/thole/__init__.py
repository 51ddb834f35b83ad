"""Runs activities of thole, and starts and controls its instances, through a gateway: docs/gateway.md."""

from ._call import Error, Status
from .client import Client, Hindrance, Instance, Outcome
from .task import LATER, Cancelled, Failure, Task, TaskCancelled, json_handler
from .worker import Worker

__all__ = [
    "LATER",
    "Cancelled",
    "Client",
    "Error",
    "Failure",
    "Hindrance",
    "Instance",
    "Outcome",
    "Status",
    "Task",
    "TaskCancelled",
    "Worker",
    "json_handler",
]
