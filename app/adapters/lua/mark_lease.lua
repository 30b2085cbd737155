-- Marks a lease as cancelled or ended. A mark is left where there is no lease, too, so that none is opened after it.
-- KEYS: lease, heartbeats, stream. ARGV: generation, state, life of a mark in ms, retention in ms,
-- channel, doorbell's payload, then the fields of the marker entry, if one is wanted.
local state, key = unpack(redis.call('HMGET', KEYS[1], 'state', 'key'))
redis.call('ZREM', KEYS[2], ARGV[1])
if ARGV[2] == 'ended' then
    redis.call('DEL', KEYS[1])
    redis.call('HSET', KEYS[1], 'state', 'ended', unpack(key and {'key', key} or {}))
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
elseif state ~= 'ended' then
    redis.call('HSET', KEYS[1], 'state', ARGV[2])
    if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
end
local wants_marker = #ARGV > 6 and state ~= 'ended'
if wants_marker then redis.call('XADD', KEYS[3], '*', unpack(ARGV, 7)) end
redis.call('PEXPIRE', KEYS[3], ARGV[4])
if wants_marker then redis.call('PUBLISH', ARGV[5], ARGV[6]) end
