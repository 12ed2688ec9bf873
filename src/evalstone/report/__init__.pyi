# The public names of evalstone.report.

from evalstone._core.front_ends import FrontEnd as FrontEnd
from evalstone._core.front_ends import SettingValue as SettingValue
from evalstone._core.front_ends import WordingPart as WordingPart
from evalstone._core.word_diff import Piece as Piece
from evalstone.report.frames import CellValue as CellValue
from evalstone.report.frames import SampleRows as SampleRows
from evalstone.report.notes import sentence_of as sentence_of
from evalstone.report.view import Block as Block
from evalstone.report.view import Cell as Cell
from evalstone.report.view import Chart as Chart
from evalstone.report.view import Column as Column
from evalstone.report.view import Examples as Examples
from evalstone.report.view import Fact as Fact
from evalstone.report.view import Figure as Figure
from evalstone.report.view import OutcomeView as OutcomeView
from evalstone.report.view import SampleList as SampleList
from evalstone.report.view import SampleView as SampleView
from evalstone.report.view import ScoreColumn as ScoreColumn
from evalstone.report.view import Section as Section
from evalstone.report.view import Table as Table
from evalstone.report.view import Tone as Tone
from evalstone.report.view import View as View

__all__: list[str]
