// A button beside each piece of code that copies it.

function addCopy(code) {
  const button = element("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    const text = code.querySelector("code").textContent;
    const done = await copied(text, code);
    button.textContent = done ? "Copied" : "Press Ctrl+C";
    byId("said").textContent = done ? "Copied" : "The text is selected: copy it by Ctrl+C";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  code.append(button);
}

// A page from a file may not reach the clipboard: then the text is selected, for the reader to copy.
async function copied(text, code) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(code.querySelector("code"));
    return false;
  }
}

document.querySelectorAll("main .code").forEach(addCopy);

// What is folded is printed too, but for the points of plots.
addEventListener("beforeprint", () => document.querySelectorAll("details:not([open])").forEach((details) => {
  if (details.closest(".plotted")) return;
  details.open = true;
  details.dataset.folded = "";
}));
addEventListener("afterprint", () => document.querySelectorAll("details[data-folded]").forEach((details) => {
  details.open = false;
  delete details.dataset.folded;
}));
