/** Texts in the languages of the pages. */
export interface InLanguages {
  readonly en: string;
  readonly ru: string;
}

export type SiteLanguage = keyof InLanguages;
