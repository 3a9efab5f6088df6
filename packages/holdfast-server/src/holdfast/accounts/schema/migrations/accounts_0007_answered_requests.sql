-- The column is named for what it says: whether the agent has its answer.

alter table agent_requests rename is_told to is_answered;
