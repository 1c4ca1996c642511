-- The health of a StorageBenchmark, BenchmarkRun, BenchmarkPool or PoolOperation, from its conditions.
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "storagebench has not looked at it yet"}
end
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local ready = conditions.Ready
if ready == nil then
  return {status = "Progressing", message = "storagebench has not looked at it yet"}
end
local message = ready.reason .. ": " .. ready.message
if conditions.Stalled ~= nil and conditions.Stalled.status == "True" then
  return {status = "Degraded", message = message}
end
if ready.status == "True" then
  return {status = "Healthy", message = message}
end
if ready.reason == "Suspended" then
  return {status = "Suspended", message = message}
end
return {status = "Progressing", message = message}
