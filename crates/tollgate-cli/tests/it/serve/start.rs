use super::process::{Folder, Process, check};
use crate::run;
use serde_json::Value;
use std::net::TcpListener;
use std::process::Command;

const ANYWHERE: [&str; 5] =
    ["serve", "--listen", "http=127.0.0.1:0", "--listen", "admin=127.0.0.1:0"];
const LISTEN: &str = "listen: {http: '127.0.0.1:0', admin: '127.0.0.1:0'}\n";

/// Runs the printed text as it is, with a shell and a real curl.
#[test]
fn the_first_minute_shows_fields_a_429_and_its_retry_after() {
    let folder = Folder::new("first-minute");
    let mut process = Process::start(&folder.0, &ANYWHERE, &[]);
    process.until(|line| line.contains("--print-default-config"));
    let lines: Vec<&String> =
        process.lines.iter().filter(|line| line.starts_with("curl ")).collect();
    assert_eq!(lines.len(), 3, "{:#?}", process.lines);
    let answers = lines.iter().map(|line| {
        let output = Command::new("sh").args(["-c", line]).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().to_lowercase()
    });
    let [admitted, spent, refused] = answers.collect::<Vec<_>>().try_into().unwrap();
    assert!(admitted.starts_with("http/1.1 200 "), "{admitted}");
    assert!(admitted.contains("\nratelimit: \"per-user\";r=99"), "{admitted}");
    assert!(
        admitted.contains("\nratelimit-policy: ") && admitted.contains("\nx-ratelimit-limit: ")
    );
    assert!(spent.starts_with("http/1.1 200 ") && spent.contains("\"remaining\":0"), "{spent}");
    assert!(refused.starts_with("http/1.1 429 "), "{refused}");
    let wait = refused.lines().find_map(|line| line.strip_prefix("retry-after: ")).unwrap();
    let wait: u64 = wait.trim().parse().unwrap();
    assert!((600..=720).contains(&wait), "five an hour is one in 720 s, not {wait}");
}

#[test]
fn a_bare_tollgate_serves_the_file_that_is_there() {
    let policy =
        format!("{LISTEN}limits: [{{name: a, key: [user], rate: 1/366d, algorithm: gcra}}]");
    let folder = Folder::with("bare", &policy);
    let mut process = Process::start(&folder.0, &[], &[]);
    let http = process.address("http");
    let admin = process.address("admin");
    assert!(http.starts_with("127.0.0.1:") && !http.ends_with(":0") && http != admin);
    assert_eq!(check(&http, "{\"user\": \"42\"}").0, 200);
    assert_eq!(check(&http, "{\"user\": \"42\"}").0, 429);
    process.signal("TERM");
    assert_eq!(process.end().code(), Some(0));
    assert!(!process.lines.iter().any(|line| line.contains("curl ")), "{:#?}", process.lines);
}

#[test]
fn the_built_in_policy_can_be_printed_and_has_no_findings() {
    let (status, policy, _) = run(&["serve", "--print-default-config"], "");
    assert_eq!(status, 0);
    let (status, findings, _) = run(&["check", "--deny", "warnings", "-"], &policy);
    assert_eq!((status, findings.as_str()), (0, ""));
}

#[test]
fn a_port_in_use_is_named_with_its_field_and_a_fix() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = Folder::with("in-use", &format!("listen: {{admin: '{address}'}}"));
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    assert_eq!(process.end().code(), Some(2));
    let text = process.lines.join("\n");
    for part in [&*address, "`listen.admin`", "in use", "port 0"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("listening"), "{text}");
}

#[test]
fn a_second_process_does_not_share_the_port_of_the_first() {
    let folder = Folder::with("second", LISTEN);
    let mut first = Process::start(&folder.0, &["serve"], &[]);
    let http = first.address("http");
    let listen = format!("http={http}");
    let mut second = Process::start(&folder.0, &["serve", "--listen", &listen], &[]);
    assert_eq!(second.end().code(), Some(2));
    assert!(second.lines.join("\n").contains(&http), "{:#?}", second.lines);
}

#[test]
fn a_file_with_errors_is_shown_as_check_shows_it() {
    let folder = Folder::with("errors", "limits: [{name: a, rate: 5/min, algoritm: gcra}]");
    let mut process = Process::start(&folder.0, &["serve", "--config", "tollgate.yaml"], &[]);
    assert_eq!(process.end().code(), Some(1));
    assert!(
        process.lines[0].starts_with("tollgate.yaml:1:33: error[TG002]: "),
        "{:#?}",
        process.lines
    );
    assert!(process.lines[1].starts_with("help: "));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = Folder::new("unreadable");
    let mut process = Process::start(&folder.0, &["serve", "--config", "none.yaml"], &[]);
    assert_eq!(process.end().code(), Some(2));
    assert!(process.lines.join("\n").contains("cannot read none.yaml: "), "{:#?}", process.lines);
}

#[test]
fn a_link_that_leads_nowhere_is_not_replaced_by_the_built_in_policy() {
    let folder = Folder::new("dangling");
    std::os::unix::fs::symlink("gone.yaml", folder.0.join("tollgate.yaml")).unwrap();
    let mut process = Process::start(&folder.0, &[], &[]);
    assert_eq!(process.end().code(), Some(2));
    assert!(
        process.lines.join("\n").contains("cannot read tollgate.yaml: "),
        "{:#?}",
        process.lines
    );
}

#[test]
fn no_limits_are_worth_a_line() {
    let folder = Folder::with("no-limits", LISTEN);
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    process.address("admin");
    assert!(process.lines.join("\n").contains("no limits are configured"), "{:#?}", process.lines);
}

#[test]
fn the_log_is_json_where_nobody_looks_and_text_when_asked() {
    let folder = Folder::with("log", &format!("{LISTEN}limits: [{{name: a, rate: 9/s}}]"));
    let log = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut process = Process::start(&folder.0, arguments, variables);
        let http = process.address("http");
        for _ in 0..3 {
            check(&http, "{}");
        }
        process.signal("TERM");
        assert_eq!(process.end().code(), Some(0));
        // The number of descriptors depends on the machine.
        let is_log = |line: &str| !line.starts_with("listening ") && !line.contains("open files");
        process.lines.retain(|line| is_log(line));
        std::mem::take(&mut process.lines)
    };
    let json: Vec<Value> =
        log(&["serve"], &[]).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let messages: Vec<&str> = json.iter().map(|row| row["message"].as_str().unwrap()).collect();
    assert_eq!(
        messages,
        ["policy in force", "draining", "stopped"],
        "one for each change of state"
    );
    let text = log(&["serve", "--log-format", "text"], &[]);
    assert!(text.len() == 3 && text[0].contains("INFO policy in force"), "{text:#?}");
    assert_eq!(log(&["serve", "--log", "error"], &[]), [""; 0]);
    assert_eq!(log(&[], &[("TOLLGATE_LOG", "warn")]), [""; 0]);
}

#[test]
fn a_variable_that_makes_no_sense_is_refused_by_name() {
    let folder = Folder::with("variables", LISTEN);
    let cases =
        [("TOLLGATE_LOG", "loud"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector:4318")];
    for (name, value) in cases {
        let mut process = Process::start(&folder.0, &[], &[(name, value)]);
        assert_eq!(process.end().code(), Some(2), "{name}");
        let text = process.lines.join("\n");
        assert!(text.contains(value), "{text}");
    }
}

#[test]
fn help_has_examples_and_every_exit_status() {
    let (status, help, _) = run(&["serve", "--help"], "");
    assert_eq!(status, 0);
    for part in
        ["Examples:", "Exit status:", "TOLLGATE_LOG", "SIGHUP", "OTEL_EXPORTER_OTLP_ENDPOINT"]
    {
        assert!(help.contains(part), "{part}");
    }
}

#[test]
fn shells_are_completed_and_pages_printed() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (status, script, _) = run(&["completions", shell], "");
        assert!(status == 0 && script.contains("simulate"), "{shell}");
    }
    let syntax =
        Command::new("bash").args(["-nc", &run(&["completions", "bash"], "").1]).status().unwrap();
    assert!(syntax.success());
    let (status, page, _) = run(&["man"], "");
    assert!(status == 0 && page.contains(".TH tollgate 1") && page.contains("serve"), "{page}");
    let (_, page, _) = run(&["man", "serve"], "");
    assert!(
        page.contains(".TH tollgate-serve 1") && page.contains("print\\-default\\-config"),
        "{page}"
    );
    let (status, _, text) = run(&["man", "sing"], "");
    assert!(status == 2 && text.contains("`sing`"), "{text}");
}

#[test]
fn a_name_is_resolved_and_one_that_cannot_be_is_named() {
    let folder = Folder::with("names", "listen: {http: 'localhost:0', admin: 'localhost:0'}");
    let mut process = Process::start(&folder.0, &["serve", "--listen", "http=localhost:0"], &[]);
    let (http, admin) = (process.address("http"), process.address("admin"));
    assert!(http.starts_with("127.0.0.1:") && admin.starts_with("127.0.0.1:"), "{http} {admin}");
    assert_eq!(check(&http, "{}").0, 200);
    let bad = |arguments: &[&str]| {
        let mut process = Process::start(&folder.0, arguments, &[]);
        (process.end().code(), process.lines.join("\n"))
    };
    let (status, text) = bad(&["serve", "--listen", "http=nowhere.invalid:8081"]);
    assert_eq!(status, Some(2));
    assert!(text.contains("`listen.http`") && text.contains("`nowhere.invalid`"), "{text}");
    let (status, text) = bad(&["serve", "--listen", "http=localhost"]);
    assert!(status == Some(2) && text.contains("such as `127.0.0.1:8081`"), "{text}");
    let (status, text) = bad(&["serve", "--listen", "web=localhost:1"]);
    assert!(status == Some(2) && text.contains("the front ends are gateway, http,"), "{text}");
    let taken = format!("http=localhost:{}", admin.rsplit(':').next().unwrap());
    let (status, text) = bad(&["serve", "--listen", &taken]);
    assert!(
        status == Some(2) && text.contains(&format!("{admin} (localhost) is in use")),
        "{text}"
    );
}

#[test]
fn a_start_without_admin_says_what_is_off_and_what_to_add() {
    let gateway = "listen: {gateway: '127.0.0.1:0'}\nupstream: http://127.0.0.1:1\nlimits: []";
    let folder = Folder::with("no-admin", gateway);
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    process.address("gateway");
    let said = |process: &Process| {
        let lines = process.lines.iter().filter(|line| line.contains("no admin listener"));
        lines.cloned().collect::<Vec<_>>()
    };
    let lines = said(&process);
    assert_eq!(lines.len(), 1, "{:#?}", process.lines);
    assert!(lines[0].contains("/metrics") && lines[0].contains("`admin: 127.0.0.1:8090`"));
    let folder = Folder::with("admin", LISTEN);
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    process.address("admin");
    assert_eq!(said(&process).len(), 0, "{:#?}", process.lines);
}

#[test]
fn an_empty_file_is_valid_and_said_to_be_empty() {
    let folder = Folder::with("empty", "# nothing yet\n");
    let listen = ["serve", "--listen", "http=127.0.0.1:0", "--listen", "admin=127.0.0.1:0"];
    let mut process = Process::start(&folder.0, &listen, &[]);
    let http = process.address("http");
    assert_eq!(check(&http, "{}").0, 200);
    let text = process.lines.join("\n");
    assert!(
        text.contains("no limits are configured") && text.contains("the file is empty"),
        "{text}"
    );
}

#[test]
fn a_pattern_without_a_file_is_named_with_its_place() {
    let policy = format!("{LISTEN}envoy: {{configs: 'ratelimits/*.yaml'}}\n");
    let folder = Folder::with("no-ratelimits", &policy);
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    process.address("admin");
    let text = process.lines.join("\n");
    assert!(text.contains("the pattern `ratelimits/*.yaml` matches no file"), "{text}");
    assert!(text.contains("`envoy.configs` matches no file with limits"), "{text}");
}

#[test]
fn a_wrong_content_type_says_which_is_right_and_how() {
    let token = "admin: {token: a-token-of-some-length}\n";
    let folder = Folder::with("media", &format!("{LISTEN}{token}limits: [{{name: a, rate: 1/s}}]"));
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    for (front, path) in [("http", "/v1/check"), ("admin", "/v1/inspect")] {
        let address = process.address(front);
        let url = format!("http://{address}{path}");
        let arguments =
            ["-s", "-i", "-H", "Authorization: Bearer a-token-of-some-length", "-d", "{}", &url];
        let output = Command::new("curl").args(arguments).output().unwrap();
        let answer = String::from_utf8(output.stdout).unwrap();
        assert!(answer.starts_with("HTTP/1.1 415 "), "{answer}");
        assert!(answer.contains("Content-Type: application/json"), "{answer}");
        assert!(answer.contains("curl --json"), "{answer}");
    }
}
