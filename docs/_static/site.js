"use strict";
// The keyboard must reach each element that scrolls sideways.
const makeScrollableReachable = () => document.querySelectorAll("pre, article table, .table-wrapper").forEach(each => {
  if (each.scrollWidth > each.clientWidth) each.tabIndex = 0; else each.removeAttribute("tabindex");
});
addEventListener("load", makeScrollableReachable);
addEventListener("resize", makeScrollableReachable);
