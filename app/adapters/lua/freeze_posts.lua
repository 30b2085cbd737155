-- Reads what a generation posted, and takes no more text from it for a moment, while a cancel is settled on it.
-- KEYS: lease, stream. ARGV: generation, time in ms.
-- Answers: 1 when nothing that was posted is missing, content, reasoning.
local complete = 0
local seq = redis.call('HGET', KEYS[1], 'seq')
if seq then
    local time = redis.call('TIME')
    redis.call('HSET', KEYS[1], 'frozen_until', time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[2]))
end
local content, reasoning, next_seq, gapless = {}, {}, 0, true
for _, entry in ipairs(redis.call('XRANGE', KEYS[2], '-', '+')) do
    local fields = {}
    for i = 1, #entry[2], 2 do
        fields[entry[2][i]] = entry[2][i + 1]
    end
    if fields.gen == ARGV[1] and fields.seq then
        gapless = gapless and tonumber(fields.seq) == next_seq
        next_seq = tonumber(fields.seq) + 1
        content[#content + 1] = fields.delta or ''
        reasoning[#reasoning + 1] = fields.reasoning_delta or ''
    end
end
if seq and gapless and next_seq == tonumber(seq) then complete = 1 end
return {complete, table.concat(content), table.concat(reasoning)}
