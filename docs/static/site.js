// The page that one reads is seen in the list of pages, however long that is.
document.addEventListener("DOMContentLoaded", () => {
  const list = document.querySelector(".sidebar-scroll");
  const page = document.querySelector(".sidebar-tree .current-page");
  if (!list || !page) return;
  const below = page.getBoundingClientRect().top - list.getBoundingClientRect().top;
  if (below > list.clientHeight * 0.8) list.scrollBy({ top: below - list.clientHeight / 3, behavior: "instant" });
});
