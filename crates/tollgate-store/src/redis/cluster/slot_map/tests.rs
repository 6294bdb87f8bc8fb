use super::*;

#[test]
fn slots_are_those_of_the_specification() {
    assert_eq!(crc16(b"123456789"), 0x31c3);
    assert_eq!(slot_of(b"foo"), 12_182);
    assert_eq!(slot_of(b"x{foo}y{bar}"), 12_182);
    assert_eq!(slot_of(b"foo{}{bar}"), crc16(b"foo{}{bar}") % 16_384);
    assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
}
