-- Takes one post of a worker: lease, key, sequence, cap, entry and doorbell in one step.
-- KEYS: lease, heartbeats. ARGV: generation, key digest, sequence ('' for a heartbeat), bytes of text,
-- most posts, retention in ms, life of an acknowledged cancel in ms, prefix of streams, prefix of channels,
-- doorbell's payload, then the entry's fields.
-- Answers: outcome, next sequence number.
local lease = redis.call('HMGET', KEYS[1], 'key', 'state', 'request', 'streamed', 'seq', 'bytes', 'max_bytes',
    'frozen_until', 'model')
local key, state, request, streamed = lease[1], lease[2], lease[3], lease[4]
if not state then return {'unknown', 0} end
if key and key ~= ARGV[2] then return {'wrong_key', 0} end
if state == 'ended' or not request then return {'ended', 0} end
local next_seq = tonumber(lease[5])
if state == 'cancelled' then
    -- Told once; a worker whose answer was lost hears that the lease has ended.
    redis.call('HSET', KEYS[1], 'state', 'ended')
    redis.call('PEXPIRE', KEYS[1], ARGV[7])
    return {'cancelled', next_seq}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[2], now, ARGV[1])
if ARGV[3] == '' then return {'accepted', next_seq} end
if streamed ~= '1' then return {'not_streamed', next_seq} end
local seq = tonumber(ARGV[3])
if seq < next_seq then return {'accepted', next_seq} end
if state == 'stopped' then return {'full', next_seq} end
-- A cancel that is being settled has read what was posted, so nothing may be added to it meanwhile.
if seq > next_seq or tonumber(lease[8] or 0) > now then return {'out_of_step', next_seq} end
local bytes = tonumber(lease[6]) + tonumber(ARGV[4])
if bytes > tonumber(lease[7]) or next_seq >= tonumber(ARGV[5]) then
    redis.call('HSET', KEYS[1], 'state', 'stopped')
    return {'full', next_seq}
end
local stream = ARGV[8] .. request
local entry = {unpack(ARGV, 11)}
-- The first entry says which model writes, for a request that several may serve.
if seq == 0 and lease[9] then entry[#entry + 1] = 'model'; entry[#entry + 1] = lease[9] end
redis.call('XADD', stream, '*', unpack(entry))
redis.call('HSET', KEYS[1], 'seq', seq + 1, 'bytes', bytes)
redis.call('PEXPIRE', stream, redis.call('PTTL', KEYS[1]) + tonumber(ARGV[6]))
redis.call('PUBLISH', ARGV[9] .. request, ARGV[10])
return {'accepted', seq + 1}
