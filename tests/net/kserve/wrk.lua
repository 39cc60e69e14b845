-- SPDX-License-Identifier: BSD-3-Clause
--
-- wrk posts the bytes of a file, raw, and compares what is behind the JSON of each answer with them.
--
--   wrk -s wrk.lua URL -- FILE
--
-- The last line: answers, and those of them that are wrong.
local threads = {}

function setup(thread)
    table.insert(threads, thread)
end

function init(arguments)
    local file = assert(io.open(arguments[1], "rb"))
    sent = file:read("*a")
    file:close()
    answers, wrong = 0, 0
    wrk.method = "POST"
    wrk.body = sent
    wrk.headers["Inference-Header-Content-Length"] = "0"
end

function response(status, headers, body)
    local length = 0
    for name, value in pairs(headers) do
        if name:lower() == "inference-header-content-length" then
            length = tonumber(value)
        end
    end
    answers = answers + 1
    if status ~= 200 or body:sub(length + 1) ~= sent then
        wrong = wrong + 1
    end
end

function done(summary, latency, requests)
    local all, bad = 0, summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
    for _, thread in ipairs(threads) do
        all = all + thread:get("answers")
        bad = bad + thread:get("wrong")
    end
    print(string.format("answers %d wrong %d", all, bad))
end
