"use strict";
// What has to be scrolled sideways must be reached by keys.
const reach = () => document.querySelectorAll("pre, article table, .table-wrapper").forEach(each => {
  if (each.scrollWidth > each.clientWidth) each.tabIndex = 0; else each.removeAttribute("tabindex");
});
addEventListener("load", reach);
addEventListener("resize", reach);
