import { keep, readKept } from '../../lib/kept.ts';
import { findTarget } from './scroll-to-target.ts';

const name = 'code';

const listRadios = (root: HTMLElement): HTMLInputElement[] => [
  ...root.querySelectorAll<HTMLInputElement>('input[name=code]'),
];

/** Shows examples in the language that was chosen before. */
export function restoreChoice(root: HTMLElement): void {
  const radio = listRadios(root).find(({ value }) => value === readKept(name));
  if (radio !== undefined && !radio.checked) {
    radio.checked = true;
    // Examples in another language have another length.
    findTarget(root)?.scrollIntoView();
  }
  markChosen(root);
}

/** Shows examples in a language on the whole page, from now on. What was clicked stays where it is. */
export function chooseCode(root: HTMLElement, language: string, clicked: Element): void {
  const before = clicked.getBoundingClientRect().top;
  for (const radio of listRadios(root)) radio.checked = radio.value === language;
  keep(name, language);
  markChosen(root);
  scrollBy(0, clicked.getBoundingClientRect().top - before);
}

function markChosen(root: HTMLElement): void {
  const chosen = listRadios(root).find(({ checked }) => checked)?.value;
  for (const figure of root.querySelectorAll('.samples')) {
    const buttons = [...figure.querySelectorAll<HTMLElement>('[data-code]')];
    // Samples that lack the chosen language show their first one.
    const shown = buttons.find((button) => button.dataset['code'] === chosen) ?? buttons[0];
    for (const button of buttons) button.setAttribute('aria-pressed', String(button === shown));
  }
}
