mod command;
fn main() {}
