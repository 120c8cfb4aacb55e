export { ConsoleFrame } from './console-frame.tsx';
export { loadConsoleTexts } from './texts.ts';
