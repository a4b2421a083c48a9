"""What the rooms say to each other: plain data, standard library only.

This is what the capture side and the server share for messages.  Each group has its module:

* `places`, `fixes`: ranges of files, and changes of a source;
* `report`: the *report* of a run (`Report` and its parts), which is also the JSON of ``irscope run --json``;
* `request`: the *request* that starts a run (`RunRequest`);
* `messages`: what a run in progress sends (`Message`, `StoreWrite`), each in one of the `frames` of a pipe;
* `facts`: what is known about a finding, for its fixes;
* `jobs`: what ranks communicate and wait for, and pieces of a model;
* `evidence`: what a run says of a changed script's numbers (`FoundEvidence`);
* `plain`: how all of it becomes JSON, and back.

Anything big (the text of a stage) stays in the run store and is named by id.
"""

from __future__ import annotations

from irscope.protocol.evidence import FoundEvidence as FoundEvidence
from irscope.protocol.evidence import NotHeldBack as NotHeldBack
from irscope.protocol.evidence import OneSided as OneSided
from irscope.protocol.facts import GRAD_MODE as GRAD_MODE
from irscope.protocol.facts import BreakFacts as BreakFacts
from irscope.protocol.facts import FindingFacts as FindingFacts
from irscope.protocol.facts import KernelCheckFacts as KernelCheckFacts
from irscope.protocol.facts import NonFiniteFacts as NonFiniteFacts
from irscope.protocol.facts import RecompilationFacts as RecompilationFacts
from irscope.protocol.facts import VaryingSize as VaryingSize
from irscope.protocol.fixes import Edit as Edit
from irscope.protocol.fixes import Fix as Fix
from irscope.protocol.fixes import carrying_out as carrying_out
from irscope.protocol.jobs import BucketSplit as BucketSplit
from irscope.protocol.jobs import Collective as Collective
from irscope.protocol.jobs import CollectiveOverlap as CollectiveOverlap
from irscope.protocol.jobs import CollectiveWait as CollectiveWait
from irscope.protocol.jobs import OverlapMove as OverlapMove
from irscope.protocol.jobs import Piece as Piece
from irscope.protocol.jobs import RuntimeCollective as RuntimeCollective
from irscope.protocol.messages import RUN_FACTS as RUN_FACTS
from irscope.protocol.messages import CompileSeen as CompileSeen
from irscope.protocol.messages import DataWritten as DataWritten
from irscope.protocol.messages import FactsWritten as FactsWritten
from irscope.protocol.messages import FindingSeen as FindingSeen
from irscope.protocol.messages import GapSeen as GapSeen
from irscope.protocol.messages import KernelsWritten as KernelsWritten
from irscope.protocol.messages import LimitReached as LimitReached
from irscope.protocol.messages import Message as Message
from irscope.protocol.messages import PredictionWritten as PredictionWritten
from irscope.protocol.messages import Progress as Progress
from irscope.protocol.messages import Refused as Refused
from irscope.protocol.messages import ScriptEnded as ScriptEnded
from irscope.protocol.messages import SourceWritten as SourceWritten
from irscope.protocol.messages import StageWritten as StageWritten
from irscope.protocol.messages import Started as Started
from irscope.protocol.messages import StoreWrite as StoreWrite
from irscope.protocol.messages import Unfit as Unfit
from irscope.protocol.messages import decode_message as decode_message
from irscope.protocol.messages import encode_message as encode_message
from irscope.protocol.messages import pack_message as pack_message
from irscope.protocol.messages import unpack_message as unpack_message
from irscope.protocol.places import Position as Position
from irscope.protocol.places import Range as Range
from irscope.protocol.plain import from_json as from_json
from irscope.protocol.plain import json_text as json_text
from irscope.protocol.plain import to_json as to_json
from irscope.protocol.report import FULL_RUN as FULL_RUN
from irscope.protocol.report import LIBRARY as LIBRARY
from irscope.protocol.report import PREDICTED as PREDICTED
from irscope.protocol.report import SCHEMA as SCHEMA
from irscope.protocol.report import CaptureGap as CaptureGap
from irscope.protocol.report import Compile as Compile
from irscope.protocol.report import CompileOutcome as CompileOutcome
from irscope.protocol.report import Cost as Cost
from irscope.protocol.report import FileLines as FileLines
from irscope.protocol.report import Finding as Finding
from irscope.protocol.report import HeldTensor as HeldTensor
from irscope.protocol.report import Kernel as Kernel
from irscope.protocol.report import Origin as Origin
from irscope.protocol.report import Outcome as Outcome
from irscope.protocol.report import OutcomeKind as OutcomeKind
from irscope.protocol.report import OutOfMemory as OutOfMemory
from irscope.protocol.report import Raised as Raised
from irscope.protocol.report import RankReport as RankReport
from irscope.protocol.report import Related as Related
from irscope.protocol.report import RelatedRole as RelatedRole
from irscope.protocol.report import Report as Report
from irscope.protocol.report import Resumed as Resumed
from irscope.protocol.report import RunSummary as RunSummary
from irscope.protocol.report import StackFrame as StackFrame
from irscope.protocol.report import StageRef as StageRef
from irscope.protocol.report import causes_only as causes_only
from irscope.protocol.report import library_calls as library_calls
from irscope.protocol.request import EAGER as EAGER
from irscope.protocol.request import GIVEN as GIVEN
from irscope.protocol.request import Choices as Choices
from irscope.protocol.request import EarlierStage as EarlierStage
from irscope.protocol.request import EntryKind as EntryKind
from irscope.protocol.request import ModelCall as ModelCall
from irscope.protocol.request import RunOptions as RunOptions
from irscope.protocol.request import RunRequest as RunRequest
from irscope.protocol.request import ValuesRequest as ValuesRequest
from irscope.vocabulary.fix_methods import FixMethod as FixMethod
from irscope.vocabulary.lanes import DEFAULT_PIPELINE as DEFAULT_PIPELINE
from irscope.vocabulary.lanes import Lane as Lane
from irscope.vocabulary.limits import Budget as Budget
from irscope.vocabulary.limits import Limit as Limit
from irscope.vocabulary.severities import Severity as Severity
