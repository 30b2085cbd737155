-- Writes a job's lease, or renews the one that it has; what was posted before is counted again after a loss.
-- KEYS: lease, stream. ARGV: generation, request, key digest, streamed, cap in bytes, life in ms,
-- whether it was lost, model.
-- Answers: state, next sequence number.
local lease, stream = KEYS[1], KEYS[2]
if redis.call('HEXISTS', lease, 'request') == 0 then
    local seq, bytes = 0, 0
    for _, entry in ipairs(redis.call('XRANGE', stream, '-', '+')) do
        local fields = {}
        for i = 1, #entry[2], 2 do
            fields[entry[2][i]] = entry[2][i + 1]
        end
        if fields.gen == ARGV[1] and fields.seq then
            seq = tonumber(fields.seq) + 1
            bytes = bytes + #(fields.delta or '') + #(fields.reasoning_delta or '')
        end
    end
    redis.call('HSET', lease, 'request', ARGV[2], 'streamed', ARGV[4], 'max_bytes', ARGV[5], 'seq', seq,
        'bytes', bytes, 'restored', ARGV[7], 'model', ARGV[8])
    -- A cancel or an end that came before the lease left its mark, which stays.
    redis.call('HSETNX', lease, 'state', 'live')
end
redis.call('HSET', lease, 'key', ARGV[3])
redis.call('PEXPIRE', lease, ARGV[6])
local found = redis.call('HMGET', lease, 'state', 'seq')
return {found[1], tonumber(found[2])}
