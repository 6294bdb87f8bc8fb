use super::*;

#[test]
fn coordinates_are_tenths_of_a_pixel() {
    let mut canvas = Canvas::new("a < b", 720, (9_600, 1_205), ".x{}");
    canvas.path("x", &[(10, 15), (20, 0), (33, 7)]);
    canvas.group("1 & 2", |canvas| canvas.rect("a", (5, 10), (20, 30)));
    canvas.text("", 0, 0, "");
    let svg = canvas.finish();
    assert!(svg.contains("width=\"960\" height=\"120.5\""));
    assert!(svg.contains("<title id=\"title\">a &lt; b</title>") && svg.contains(".x{}</style>"));
    assert!(svg.contains("<path class=\"x\" d=\"M1 1.5L2 0L3.3 0.7\"/>\n"));
    let group = "<g><title>1 &amp; 2</title><rect class=\"a\" x=\"0.5\" y=\"1\" width=\"2\" height=\"3\"/></g>\n";
    assert!(svg.ends_with(&format!("{group}</svg>\n")));
}
