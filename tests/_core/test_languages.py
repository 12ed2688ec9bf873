from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path

import pytest

from evalstone import Sample
from evalstone._core.languages import LANGUAGE_NAMES, is_foreign, language_of
from evalstone.types.sample_language import sample_language

GERMAN = "Bern liegt in der Schweiz und ist die Hauptstadt des Landes."

FOREIGN = [
    ("de", "Die Rechnung wurde am Montag bezahlt, und der Kunde hat keine weiteren Fragen gestellt."),
    ("de", "Ich weiß nicht, ob das Paket schon angekommen ist; bitte prüfen Sie es auf der Seite."),
    ("de", "Was will er am Abend in der Stadt, wenn das Fest nicht mehr für alle offen ist?"),
    ("de", "Unser Umsatz ist im letzten Quartal stark gestiegen, vor allem durch das Geschäft mit der Cloud."),
    ("fr", "Il est possible de retourner un article dans les trente jours qui suivent l'achat."),
    ("fr", "Je ne sais pas si le train de Paris est déjà parti, mais vous pouvez demander au guichet."),
    ("es", "Los ingresos crecieron mucho en el último trimestre por los servicios en la nube."),
    ("es", "Puede devolver el artículo durante los treinta días que siguen a la compra."),
    ("es", "No se puede cambiar la contraseña porque el enlace ya no es válido."),
    ("es", "El perro come la carne y bebe agua fresca en una casa muy grande con su familia."),
    ("it", "I ricavi sono cresciuti molto nell'ultimo trimestre grazie ai servizi della nuvola."),
    ("it", "Non è possibile cambiare la password perché il collegamento non è più valido."),
    ("it", "Il cliente ha pagato la fattura lunedì e non ha fatto altre domande."),
    ("it", "La capitale della Svizzera è Berna, che si trova nel centro del paese."),
    ("pt", "A receita cresceu muito no último trimestre por causa dos serviços em nuvem."),
    ("pt", "Não é possível alterar a senha porque o link já não é válido."),
    ("pt", "Você pode devolver o produto em até trinta dias, mas não pode trocar por dinheiro."),
    ("nl", "De omzet is in het laatste kwartaal sterk gestegen door de groei van de cloud."),
    ("nl", "Het is niet mogelijk om het wachtwoord te wijzigen, want de link werkt niet meer."),
    ("nl", "Ik weet niet of het pakket al is aangekomen; kijk op de website van de winkel."),
    ("latin", "Det går inte att ändra lösenordet eftersom länken inte längre är giltig."),
    ("latin", "Intäkterna ökade kraftigt under det senaste kvartalet på grund av molntjänster."),
    ("latin", "Det er ikke muligt at ændre adgangskoden, fordi linket ikke længere er gyldigt."),
    ("latin", "København er Danmarks hovedstad og landets største by med mange indbyggere."),
    ("latin", "Warszawa jest stolicą Polski i największym miastem w kraju, które leży nad Wisłą."),
    ("latin", "Nie można zmienić hasła, ponieważ link nie jest już ważny."),
    ("latin", "Przychody wzrosły w ostatnim kwartale dzięki usługom w chmurze oraz sprzedaży."),
    ("latin", "Heslo nelze změnit, protože odkaz už není platný a musí se vytvořit znovu."),
    ("latin", "Şifre değiştirilemiyor çünkü bağlantı artık geçerli değil, lütfen bir daha deneyin."),
    ("latin", "Helsinki on Suomen pääkaupunki ja maan suurin kaupunki, joka sijaitsee rannikolla."),
    ("latin", "Salasanaa ei voi vaihtaa, koska linkki ei ole enää voimassa."),
    ("latin", "Jakarta adalah ibu kota Indonesia dan merupakan kota terbesar di negara itu."),
    ("latin", "Kata sandi tidak dapat diubah karena tautan ini sudah tidak berlaku untuk pengguna."),
    ("latin", "Hà Nội là thủ đô của Việt Nam và là thành phố lớn thứ hai của cả nước."),
    ("latin", "București este capitala României și cel mai mare oraș din țară."),
]
NEUTRAL = [
    "Yes, revenue grew sharply last quarter driven largely by cloud services growth",
    "Angela Merkel Emmanuel Macron Pedro Sánchez Giorgia Meloni Mark Rutte António Costa",
    "Angela Merkel, Ursula von der Leyen, Charles de Gaulle, Luiz Inácio Lula da Silva, Andrés Manuel López Obrador",
    "Package Version\n------- -------\nnumpy 2.1.0\npandas 2.2.3\nrequests 2.32.3\ncertifi 2024.8.30\nidna 3.10",
    "kubectl get pods --namespace production --selector app=checkout --output json --watch",
    "kubectl -n prod rollout restart deployment checkout && kubectl -n prod rollout status deployment checkout",
    "def total(rows): return sum(row.price * row.count for row in rows if row.valid) if rows else None",
    "SELECT name, total FROM orders JOIN customers ON orders.customer = customers.id WHERE total > 100 ORDER BY total",
    "Apple iPhone 15 Pro Max 256 GB Titanium Blue Unlocked Smartphone USB-C Charger Case Bundle",
    "Nestlé Nespresso Vertuo Next Premium Coffee Espresso Machine De'Longhi Black Rose Gold Edition",
    "El Paso Las Vegas Los Angeles San Francisco La Jolla El Segundo Las Cruces Los Alamos",
    "12 Rue de la Paix, 75002 Paris; 5 Place de la Concorde, 75008 Paris; Avenue des Champs-Élysées 1",
    "Calle de Alcalá 45, 28014 Madrid; Paseo de la Castellana 100; Calle del Prado 7; Avenida de los Toreros 3",
    "Acme offers a refund within a month after a purchase; customers need a receipt.",
    "Do a backup, do a restore, as no one expects a failure during a migration.",
    "Supported locales: en es de fr it pt nl la et da no sv is se",
    "Revenue rose sharply; margins improved; management raised guidance; shares jumped twelve percent Thursday",
    "Ibuprofen Paracetamol Aspirin Amoxicillin Metformin Atorvastatin Lisinopril Omeprazole Losartan Gabapentin",
    "Real Madrid 3 Manchester City 1 Bayern München 2 Paris Saint-Germain 0 Internazionale 2 Benfica 1",
    "crème brûlée, café au lait, jalapeño poppers, piña colada, smörgåsbord, gnocchi alla romana",
    "Error: ENOENT no such file or directory open config.json errno -2 code ENOENT syscall open",
    "Yes. No. Maybe. Sure. Fine. Agreed. Rejected. Approved. Pending. Unknown.",
    "Please restart your router, wait thirty seconds, reconnect every device, then test again.",
    "Lorem Corp Q3 EBITDA margin 23.4% vs 21.1% consensus 22.0% guidance raised FY25 EPS 4.10 4.25",
    "The restaurant is called La Casa de los Abuelos and serves tapas to the guests of the hotel.",
    "Ludwig van Beethoven wrote nine symphonies; Johann Sebastian Bach wrote over two hundred cantatas.",
    'NEGATORS = ("cant", "can\'t", "dont", "don\'t", "doesnt", "not", "non", "wont", "won\'t", "isnt")',
]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Bern is in Switzerland, and it is the capital of the country.", "en"),
        (GERMAN, "de"),
        ("Berne est la capitale de la Suisse et une ville du pays.", "fr"),
        ("Berna es la capital de Suiza y está en el centro del país.", "es"),
        ("Berna è la capitale della Svizzera e non è la città più grande.", "it"),
        ("Berna é a capital da Suíça e não é a maior cidade do país.", "pt"),
        ("Bern is de hoofdstad van Zwitserland en niet de grootste stad.", "nl"),
        ("Stockholm är huvudstad i Sverige och landets största stad med många invånare.", "latin"),
        ("Берн — столица Швейцарии.", "cyrillic"),
        ("伯尔尼在瑞士。", "han"),
        ("ベルンはスイスの首都です。", "kana"),
        ("베른은 스위스의 수도입니다.", "hangul"),
        ("برن عاصمة سويسرا.", "arabic"),
        ("La réponse est la ville de Paris, qui est en France.", "fr"),
        ("Charles de Gaulle and the mayor of La Paz met in a hotel de luxe.", ""),
        ("Paris.", ""),
        ("Ada Lovelace, Charles Babbage, Alan Turing, Grace Hopper, John von Neumann, Claude Shannon", ""),
        ("", ""),
        ("The word for it is 伯尔尼 in Chinese, and that is all there is to it.", "en"),
    ],
)
def test_languages_are_told_apart_by_words_and_scripts(text: str, language: str) -> None:
    assert language_of(text) == language
    assert language in LANGUAGE_NAMES


def test_texts_of_other_languages_are_foreign_and_told_apart_where_known() -> None:
    assert [language_of(text) for _, text in FOREIGN] == [language for language, _ in FOREIGN]


@pytest.mark.parametrize("text", NEUTRAL)
def test_names_code_commands_and_products_are_of_no_other_language(text: str) -> None:
    assert language_of(text) in ("en", "")


def _sentences() -> dict[str, list[str]]:
    """Answers of two to fifteen words by language: twenty of each, and sixty that are English."""
    found: dict[str, list[str]] = defaultdict(list)
    language = ""
    for line in Path(__file__).with_name("sentences.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            language = line[2:]
        else:
            found[language].append(line)
    return found


def test_no_english_answer_is_foreign_and_two_thirds_of_other_short_answers_are() -> None:
    sentences = _sentences()
    told = {name: sum(is_foreign(language_of(text)) for text in texts) for name, texts in sentences.items()}
    assert len(sentences) == 25
    assert told.pop("en") == 0
    assert {name: number for name, number in told.items() if number < 9} == {}
    assert sum(told.values()) >= 320  # of 480


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("nicht sind", "de"),  # two words of it
        ("nicht Haus Garten", ""),  # one
        ("nicht Sind Haus", ""),  # a capitalized word may be a name
        ("nicht die der Haus", "de"),  # one, and two that other languages have too
        ("die der den Haus", ""),  # only such words
        ("nicht der Haus", ""),  # one, and one that other languages have too
        ("nicht – Haus", ""),  # a dash isn't a word
        ("nicht müde Haus", "latin"),  # one, and a word with an accent
        ("müde Häuser blühen größer", ""),  # only accents, as in menus
        ("nicht sind " + "Haus " * 18, "de"),  # a tenth of the words
        ("nicht sind " + "Haus " * 19, ""),
        ("nicht sind kein the", "de"),
        ("nicht sind kein the and these", ""),
        ("nicht sind pas sont", "latin"),  # no language leads
        ("nicht sind kein pas sont", "de"),
        ("nicht sind kein keine auch wird ich wir sie ihr pas sont nous vous très aussi même", "latin"),
        ("the and nicht", "en"),
        ("the nicht", ""),
        ("«nicht», (sind)…", "de"),
    ],
)
def test_how_many_words_tell_a_language(text: str, language: str) -> None:
    assert language_of(text) == language


def test_a_sample_has_the_language_of_its_first_clear_text() -> None:
    assert sample_language(Sample(output="Bern.", context=[GERMAN], input="Where is it, and what is it?")) == "de"
    assert sample_language(Sample(output="Bern.")) == ""
    assert sample_language(Sample(reference="Bern is the capital of the country.")) == "en"


def test_the_language_of_a_sample_takes_microseconds() -> None:
    sample = Sample(output=GERMAN * 1000)
    started = time.process_time()
    for _ in range(1000):
        sample_language(sample)
    assert time.process_time() - started < 0.1  # some 10 µs each
