//! A server's answer on its way to a client.

use super::{
    body::{Answer, Body, Download},
    exchange::Got,
    forward,
    upstream::Upstreams,
};
use crate::{
    Node,
    net::{Caller, Tunnel},
};
use hyper::{Response, StatusCode};
use std::rc::Rc;
use tollgate_tower::Pass;

/// Turns a server's answer into the client's.
pub(super) async fn answer(
    got: Got,
    caller: &Rc<Caller>,
    upstreams: &Upstreams,
) -> Option<(Response<Answer>, Option<Tunnel>)> {
    let Got { response, connection, estate } = got;
    let (mut head, incoming) = response.into_parts();
    if !forward::is_plain(&head) {
        return None;
    }
    forward::response(&mut head).ok()?;
    let idle = upstreams.settings.idle;
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        // Nobody gets another protocol who has not asked for it.
        let estate = estate?.await.ok()?;
        let tunnel =
            Tunnel { stream: Box::new(estate.stream), left: estate.left, idle, keep: None };
        return Some((Response::from_parts(head, Answer::Own(None)), Some(tunnel)));
    }
    connection.connection.shared.heir.take();
    let download = Download { incoming, alarm: caller.alarm(), idle, connection: Some(connection) };
    Some((Response::from_parts(head, Answer::Theirs(Box::new(download))), None))
}

/// An answer with what its request holds until all of it has been sent.
pub(super) fn answered(
    response: Response<Answer>,
    pass: Pass<Node>,
    tunnel: Option<Tunnel>,
    caller: &Caller,
) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    let holding = pass.answer_head(&mut head);
    let body = match tunnel {
        None => Body::Held(holding.body(body)),
        Some(mut tunnel) => {
            // What is held is held until both have hung up.
            tunnel.keep = Some(Box::new(holding));
            caller.join(tunnel);
            Body::Free(Answer::Own(None))
        }
    };
    Response::from_parts(head, body)
}
