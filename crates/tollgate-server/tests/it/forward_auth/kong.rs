//! The function for Kong, run by HAProxy's Lua with stubs of Kong's modules.

use std::fs;
use std::process::Command;

/// Runs the function for each answer of Tollgate, and prints Kong's action.
const HARNESS: &str = r#"
local answer
package.loaded["resty.http"] = { new = function() return {
  set_timeout = function() end, request_uri = function() return answer end } end }
package.loaded["cjson.safe"] = { encode = function() return "{}" end }
local nothing = function() return "" end
local said
kong = {
  client = { get_forwarded_ip = nothing },
  request = { get_method = nothing, get_path = nothing, get_host = nothing },
  response = { exit = function(status) said = status end },
  log = { err = function() end }, ctx = { shared = {} },
}
local access = assert(loadfile("access.lua"))
local out = assert(io.open("out", "w"))
for _, status in ipairs({ 0, 200, 204, 301, 400, 403, 404, 413, 429, 431, 500, 503 }) do
  answer, said = status > 0 and { status = status, headers = {}, body = "" } or nil, "pass"
  access()
  out:write(status, "=", said, " ")
end
out:close()
"#;

#[test]
fn only_admitted_requests_and_those_without_tollgate_pass() {
    let readme = include_str!("../../../../../docs/forward-auth/README.md");
    let kong = readme.split("\n## Kong").nth(1).unwrap();
    let access = kong.split("```lua\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = std::env::temp_dir().join(format!("tollgate-kong-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("access.lua"), access).unwrap();
    fs::write(folder.join("harness.lua"), HARNESS).unwrap();
    let file = "global\n  lua-load harness.lua\ndefaults\n  mode http\n";
    fs::write(folder.join("haproxy.cfg"), file).unwrap();
    let run =
        Command::new("haproxy").args(["-c", "-f", "haproxy.cfg"]).current_dir(&folder).output();
    let told =
        fs::read_to_string(folder.join("out")).unwrap_or_else(|why| panic!("{why}: {run:?}"));
    fs::remove_dir_all(&folder).unwrap();
    let expected = "0=pass 200=pass 204=pass 301=500 400=400 403=500 404=500 413=500 429=429 431=500 500=500 503=503 ";
    assert_eq!(told, expected);
}
