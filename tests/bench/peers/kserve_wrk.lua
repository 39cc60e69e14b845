-- SPDX-License-Identifier: BSD-3-Clause
-- For wrk: sends the body in the file $BODY, and prints its figures as JSON. The request is made once.
local file = io.open(os.getenv("BODY"), "rb")
wrk.method = "POST"
wrk.body = file:read("*a")
file:close()
local json_length = os.getenv("JSON_LENGTH")
if json_length ~= "" then
    wrk.headers["Inference-Header-Content-Length"] = json_length
end
wrk.headers["Content-Type"] = os.getenv("BODY_TYPE")

function done(summary, latency, requests)
    local e = summary.errors
    io.stderr:write(string.format(
        '{"requests":%d,"seconds":%.6f,"bytes":%d,"errors":%d,"p50_us":%d,"p99_us":%d}\n',
        summary.requests, summary.duration / 1e6, summary.bytes,
        e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50), latency:percentile(99)))
end
