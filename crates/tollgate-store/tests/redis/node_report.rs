//! Reports that nodes leave for each other.

use crate::Server;
use crate::support::long_deadline;
use std::time::Duration;
use tollgate_store::RedisStore;

const LIFETIME: Duration = Duration::from_secs(60);

async fn read(store: &RedisStore) -> Vec<(String, Vec<u8>)> {
    let mut reports: Vec<_> = store.reports("test").await.unwrap();
    reports.sort_by(|a, b| a.node.cmp(&b.node));
    reports.into_iter().map(|report| (report.node, report.report)).collect()
}

#[tokio::test]
async fn every_node_reads_the_latest_report_of_each() {
    let server = Server::start().await;
    let [one, two] =
        [(); 2].map(|()| RedisStore::open(&server.endpoint(), long_deadline()).unwrap());
    assert_eq!(read(&one).await, []);
    one.publish_report("test", "one", b"1", LIFETIME).await.unwrap();
    one.publish_report("test", "one", b"{\n\"a\": \"\\u0000\xff\"}\n", LIFETIME).await.unwrap();
    two.publish_report("test", "two", b"2", LIFETIME).await.unwrap();
    two.publish_report("other", "two", b"3", LIFETIME).await.unwrap();
    let expected: [(&str, &[u8]); 2] = [("one", b"{\n\"a\": \"\\u0000\xff\"}\n"), ("two", b"2")];
    let expected = expected.map(|(node, report)| (node.to_owned(), report.to_vec()));
    assert_eq!(read(&one).await, expected);
    assert_eq!(read(&two).await, expected);
}

#[tokio::test]
async fn the_report_of_a_node_that_is_gone_expires() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    store.publish_report("test", "gone", b"1", Duration::from_millis(1)).await.unwrap();
    while !read(&store).await.is_empty() {
        tokio::task::yield_now().await;
    }
    store.publish_report("test", "here", b"2", LIFETIME).await.unwrap();
    assert_eq!(read(&store).await, [("here".to_owned(), b"2".to_vec())]);
}
