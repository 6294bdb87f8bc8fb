//! Tokens in requests over HTTP/2: the table for HTTP/1.1 holds, with and without a hop-by-hop
//! header.

use super::super::table::cases::{Case, tokens::CASES};
use super::super::{Backend, Gateway, folder};
use super::{LONG, connect, request, run};

fn gateway(case: &Case, backend: &Backend) -> Gateway {
    let folder = folder();
    if let Some((name, keys)) = case.keys {
        std::fs::write(folder.join(name), keys).unwrap();
    }
    let listen = "listen: {gateway: '127.0.0.1:0'}";
    Gateway::within(folder, &format!("{listen}\nupstream: {}\n{}\n", backend.url(), case.policy))
}

#[test]
fn the_table_of_tokens_holds() {
    let backend = Backend::usual();
    for case in CASES {
        for more in [&[][..], &[LONG]] {
            let gateway = gateway(case, &backend);
            run(async {
                let mut client = connect(&gateway).await;
                for (index, step) in case.steps.iter().enumerate() {
                    let at = format!("{}, step {index}", case.name);
                    let (method, path) = step.request.split_once(' ').unwrap();
                    let request = request(method, path, &[step.fields, more].concat());
                    let answer = client.send_request(request).await.unwrap();
                    assert_eq!(answer.status().as_u16(), step.status, "{at}: {answer:?}");
                    for (name, expected) in step.answered {
                        let found = answer.headers().get(*name);
                        let found = found.map(|value| value.to_str().unwrap());
                        assert_eq!(found, *expected, "{at}: {name}");
                    }
                }
            });
        }
    }
}
