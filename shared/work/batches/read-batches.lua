-- Reads batches. Needs `prefix` and `accountId`.

-- Returns as JSON of each batch its id and its fields, without what only workers need.
local function readBatches(ids)
  local batches = {}
  for _, id in ipairs(ids) do
    local fields = redis.call('HGETALL', prefix .. 'batch:' .. accountId .. ':' .. id)
    local shown = {}
    for i = 1, #fields, 2 do
      if fields[i] ~= 'prices' and string.sub(fields[i], 1, 4) ~= 'sum:' then
        shown[#shown + 1] = fields[i]
        shown[#shown + 1] = fields[i + 1]
      end
    end
    if #shown > 0 then batches[#batches + 1] = {id, shown} end
  end
  return #batches > 0 and cjson.encode(batches) or '[]'
end
