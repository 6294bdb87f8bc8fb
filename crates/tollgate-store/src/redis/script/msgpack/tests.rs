use super::*;

#[test]
fn every_width_is_written_and_read() {
    let params = [0, 1, 127, 128, 255, 256, 65_535, 65_536, u32::MAX.into(), 1 << 32, MOST as i64];
    for number in params.into_iter().chain([-1, -32, -33, -100_000_000_000_000]) {
        let mut bytes = array(&[number]);
        // `array` writes the long head of an array; `numbers` reads the short one.
        bytes.splice(..5, [0x91]);
        assert_eq!(super::numbers::<1>(&bytes), Some([number]), "{number}");
        assert_eq!(super::numbers::<2>(&bytes), None, "one is not two");
        bytes.push(0);
        assert_eq!(super::numbers::<1>(&bytes), None, "nothing follows");
    }
}

#[test]
fn what_lua_writes_in_fewer_bytes_is_read_too() {
    let written = [0x94, 0xcc, 200, 0xd0, 0x80, 0xd1, 0x80, 0, 0xd2, 0x80, 0, 0, 0];
    assert_eq!(numbers::<4>(&written), Some([200, -128, -32_768, -2_147_483_648]));
    assert_eq!(numbers::<1>(&[0x91, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0]), None, "no floats");
    assert_eq!(numbers::<1>(&[]), None);
}
