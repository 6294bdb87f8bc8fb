//! The HTTP endpoints of envoyproxy/ratelimit: `POST /json`, `ShouldRateLimit` in proto3 JSON, and
//! `/healthcheck`. `listen.http` and `listen.grpc` both serve these paths.

use super::service::{CallContext, RateLimitService};
use super::writer::json as json_writer;
use crate::front::browser::{is_json, is_public_origin};
use hyper::StatusCode;
use std::time::Duration;
use tollgate_net::{HttpResponse, Request};

const JSON: &str = "/json";
const HEALTH: &str = "/healthcheck";

/// Whether [`answer`] handles this path.
pub(crate) fn is_http_path(path: &str) -> bool {
    [JSON, HEALTH].contains(&path)
}

/// Answers a request for one of these paths.
pub(crate) async fn answer(
    service: &RateLimitService,
    Request { head, body, .. }: Request<'_>,
    body_within: Duration,
    answer: &mut HttpResponse,
) {
    if head.path() == HEALTH {
        // Like envoyproxy/ratelimit: 200 and `OK`, or 500 without a body.
        let is_ready = service.node.health.is_ready();
        let failed = (StatusCode::INTERNAL_SERVER_ERROR, "");
        let (status, body) = if is_ready { (StatusCode::OK, "OK") } else { failed };
        return text(status, body, answer);
    }
    if head.method != "POST" {
        text(StatusCode::METHOD_NOT_ALLOWED, "use POST\n", answer);
        answer.header("allow", "POST");
    } else if head.headers.all("origin").any(is_public_origin) {
        let why = "this is for programs, not for web pages: leave out Origin\n";
        text(StatusCode::FORBIDDEN, why, answer);
    } else if !is_json(head.headers.get("content-type")) {
        let why = "send JSON with Content-Type: application/json, as curl --json does\n";
        text(StatusCode::UNSUPPORTED_MEDIA_TYPE, why, answer);
    } else {
        match body.collect(super::BYTES_MAX, body_within).await {
            Ok(body) => json(service, &body, answer).await,
            Err(error) => {
                service.count_invalid();
                text(error.status(), &format!("{error}\n"), answer);
            }
        }
    }
}

/// Answers a call of `/json`: 200, 429 over a limit, 400 if malformed.
async fn json(service: &RateLimitService, body: &[u8], answer: &mut HttpResponse) {
    let now_us = service.node.clock.now_us();
    let decided = async {
        let request = serde_json::from_slice(body).map_err(|why| why.to_string())?;
        let decided = service.decide(
            &request,
            CallContext::default(),
            now_us,
            |decision, header_lines, _| {
                let body = json_writer::object(|out| decision.write(header_lines, out)).to_string();
                (decision.verdict.allowed, body)
            },
        );
        decided.await.map_err(|status| status.message.into_owned())
    };
    match decided.await {
        Ok((allowed, body)) => {
            answer.status = if allowed { StatusCode::OK } else { StatusCode::TOO_MANY_REQUESTS };
            answer.header("content-type", "application/json");
            answer.body.extend_from_slice(body.as_bytes());
        }
        Err(why) => {
            service.count_invalid();
            text(StatusCode::BAD_REQUEST, &format!("{why}\n"), answer);
        }
    }
}

/// Answers with a text.
pub(super) fn text(status: StatusCode, body: &str, answer: &mut HttpResponse) {
    answer.status = status;
    answer.header("content-type", "text/plain; charset=utf-8");
    answer.body.extend_from_slice(body.as_bytes());
}
