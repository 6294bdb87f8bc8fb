use super::StoreThread;
use std::sync::mpsc::channel;

#[test]
fn what_cannot_be_called_off_does_not_hold_up_its_end() {
    let background = StoreThread::start().unwrap();
    let (begun, has_begun) = channel();
    let (end, ended) = channel::<()>();
    // Stands for the lookup of a name whose server does not answer.
    background.handle.spawn_blocking(move || {
        begun.send(()).unwrap();
        let _ = ended.recv();
    });
    has_begun.recv().unwrap();
    drop(background);
    drop(end);
}
