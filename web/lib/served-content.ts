/** Content that the server has rendered into the page. */
export interface ServedContent {
  readonly element: HTMLElement;
  readonly path: string;
  readonly language: string;
}

let served: ServedContent | null = null;

/** Takes the content out of the page before the application is rendered in its place. */
export function takeServedContent(root: Element): void {
  const element = root.querySelector<HTMLElement>('#docs');
  if (element !== null)
    served = { element, path: location.pathname, language: document.documentElement.lang };
  root.replaceChildren();
}

export const readServedContent = (): ServedContent | null => served;
