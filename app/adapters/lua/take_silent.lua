-- Notes that somebody hears posts, or that the sweep looks at them, and gives the sweep the jobs that fell silent.
-- Silence counts only while posts could be heard: a break of the web processes, of the sweep or of Redis itself
-- begins the count anew. A job that was given is given again later, unless it is forgotten meanwhile.
-- KEYS: heartbeats, watch. ARGV: who, silence in ms, longest break in ms, jobs at most (0: only note), rest in ms.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = redis.call('HGET', KEYS[2], ARGV[1] .. ':last')
if not last or now - tonumber(last) > tonumber(ARGV[3]) then
    redis.call('HSET', KEYS[2], ARGV[1] .. ':since', now)
end
redis.call('HSET', KEYS[2], ARGV[1] .. ':last', now)
if ARGV[4] == '0' then return {} end
local watch = redis.call('HMGET', KEYS[2], 'web:last', 'web:since', ARGV[1] .. ':since')
if not watch[1] or now - tonumber(watch[1]) > tonumber(ARGV[3]) then return {} end
local horizon = now - tonumber(ARGV[2])
if tonumber(watch[2]) > horizon or tonumber(watch[3]) > horizon then return {} end
local silent = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', horizon, 'LIMIT', 0, ARGV[4])
for _, generation in ipairs(silent) do
    redis.call('ZADD', KEYS[1], horizon + tonumber(ARGV[5]), generation)
end
return silent
