# The public names of evalstone.agents.

from evalstone.agents.from_traces import extract_trajectory as extract_trajectory
from evalstone.agents.from_traces import extract_trajectory_from_trace as extract_trajectory_from_trace
from evalstone.agents.from_traces import extract_workflow_trajectory as extract_workflow_trajectory
from evalstone.agents.messages import agent_sample as agent_sample
from evalstone.agents.messages import answer_text as answer_text
from evalstone.agents.messages import conversation_history as conversation_history
from evalstone.agents.messages import last_user_text as last_user_text
from evalstone.agents.messages import tool_results as tool_results
from evalstone.agents.messages import trajectory_sample as trajectory_sample
from evalstone.agents.transcripts import Transcript as Transcript
from evalstone.agents.transcripts import read_transcript as read_transcript

__all__: list[str]
