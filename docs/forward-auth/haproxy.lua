-- Asks Tollgate about a request. Sets txn.tollgate to allow, deny or misconfigured, and to nothing when there is no answer.

-- Fields that belong to the client's connection, or to a body that is not sent along.
local dropped = {
    ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["host"] = true, ["te"] = true,
    ["transfer-encoding"] = true, ["upgrade"] = true,
    -- Set below, whatever the client says.
    ["x-forwarded-method"] = true, ["x-forwarded-uri"] = true, ["x-forwarded-host"] = true,
    ["x-original-method"] = true, ["x-original-uri"] = true, ["x-original-url"] = true,
}

core.register_action("tollgate", { "http-req" }, function(txn, url)
    local fields = {}
    local host = ""
    for name, values in pairs(txn.http:req_get_headers()) do
        if name == "host" then host = values[0] end
        if not dropped[name] then
            fields[name] = {}
            for place, value in pairs(values) do fields[name][place + 1] = value end
        end
    end
    fields["x-forwarded-method"] = { txn.sf:method() }
    -- Without a path, as in `GET http://host` and `OPTIONS *`, the target as the client wrote it.
    local target = txn.sf:pathq()
    if not target or target == "" then target = txn.sf:url() end
    fields["x-forwarded-uri"] = { target }
    fields["x-forwarded-host"] = { host }

    -- Longer than the longest `queue` of a limit: without an answer, fail-open files let the request pass.
    local answer = core.httpclient():get { url = url, headers = fields, timeout = 1000 }
    if not answer or not answer.headers then return end
    -- An answer without a decision is a denial: a client can cause one with a malformed head. HAProxy has a status of 0 or
    -- 5xx where it cannot reach Tollgate.
    if answer.status > 0 and answer.status < 500 then txn:set_var("txn.tollgate", "deny") end
    for field, variable in pairs({
        ["x-tollgate-decision"] = "txn.tollgate", ["retry-after"] = "txn.tollgate_retry_after",
        ["ratelimit"] = "txn.tollgate_ratelimit", ["ratelimit-policy"] = "txn.tollgate_policy",
        ["x-tollgate-reason"] = "txn.tollgate_reason",
    }) do
        local values = answer.headers[field]
        if values then txn:set_var(variable, values[0]) end
    end
end, 1)
